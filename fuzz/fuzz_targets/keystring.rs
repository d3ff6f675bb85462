//! Keys: byte order is value order, values come back, and malformed keys are refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pando_bson::keystring::{Directions, KeyBuilder, KeyReader, split_record_id, split_record_key};
use pando_bson::{RawDoc, cmp_values};

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let directions = Directions(u32::from(*first));
    let mut reader = KeyReader::new(rest, directions, rest);
    while let Ok(Some(_)) = reader.next_value() {}
    let mut reader = KeyReader::new(rest, directions, &[]);
    while let Ok(true) = reader.skip() {}
    let _ = (split_record_id(rest), split_record_key(rest));

    let Ok(a) = RawDoc::validate_prefix(rest) else { return };
    let b = RawDoc::validate_prefix(&rest[a.byte_len()..]).unwrap_or(a);
    for (x, y) in a.iter().zip(b.iter()) {
        let key = |e| {
            let mut k = KeyBuilder::new(directions);
            k.append_elem(e, None);
            k
        };
        let (kx, ky) = (key(&x), key(&y));
        let mut order = cmp_values(x.value(), y.value());
        if directions.is_descending(0) {
            order = order.reverse();
        }
        assert_eq!(kx.bytes().cmp(ky.bytes()), order, "{x:?} {y:?}");
        let mut reader = KeyReader::new(kx.bytes(), directions, kx.type_bits());
        let back = reader.next_value().expect("a built key reads back").expect("one field");
        assert_eq!(back.element_type(), x.ty);
        let mut again = pando_bson::DocBuilder::new();
        again.bson("", &back);
        assert!(cmp_values(again.finish().first().expect("one field").value(), x.value()).is_eq());
    }
});
