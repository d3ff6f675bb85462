//! OP_COMPRESSED from both sides: hostile payloads, and honest ones that must survive the way there and back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pando_bson::{DocBuilder, Value};
use pando_wire::{Compressor, Compressors, Frame, Scratch, compress, decode, encode_msg, op};
use std::cell::RefCell;

thread_local! {
    // As a connection does: codecs are kept between messages.
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

fuzz_target!(|data: &[u8]| SCRATCH.with(|s| run(data, &mut s.borrow_mut())));

fn run(data: &[u8], scratch: &mut Scratch) {
    let Some((choice, rest)) = data.split_first() else { return };
    let compressor = Compressor::ALL[usize::from(*choice) % 3];
    if choice & 0x80 != 0 {
        let Some((claimed, payload)) = rest.split_first_chunk::<4>() else { return };
        let mut wire = (25 + payload.len() as u32).to_le_bytes().to_vec();
        for n in [1, 0, op::COMPRESSED, op::MSG] {
            wire.extend_from_slice(&n.to_le_bytes());
        }
        wire.extend_from_slice(claimed);
        wire.push(compressor as u8);
        wire.extend_from_slice(payload);
        let _ = decode(&wire, Compressors::ALL, scratch);
        return;
    }
    let mut body = DocBuilder::new();
    body.value("x", Value::Binary { subtype: 0, bytes: rest });
    let body = body.finish();
    let mut wire = Vec::new();
    encode_msg(&mut wire, 1, 0, 0, &body, &[]);
    compress(&mut wire, 0, compressor, scratch);
    match decode(&wire, Compressors::ALL, scratch) {
        Ok(Some((Frame::Msg(m), envelope))) => {
            assert!(m.body == &*body);
            assert_eq!(envelope.consumed, wire.len());
        }
        other => panic!("{other:?}"),
    }
}
