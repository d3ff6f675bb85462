//! Hashes as a real server computed them: a document with one field "" in hex, and the hash.

use pando_bson::{RawDoc, hashed::hashed_key_of};

#[test]
fn hashes_equal_a_real_server_s() {
    let mut count = 0;
    for line in include_str!("data/hashed.txt").lines() {
        let (hex, hash) = line.split_once(' ').unwrap();
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect();
        let e = RawDoc::validate(&bytes).unwrap().first().unwrap();
        assert_eq!(hashed_key_of(&e), hash.parse::<i64>().unwrap(), "{e:?}");
        count += 1;
    }
    assert!(count > 40);
}
