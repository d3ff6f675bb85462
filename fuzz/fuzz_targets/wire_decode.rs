//! Any bytes as a message: decoded, incomplete or refused, and what is decoded lies within the input.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pando_wire::{Compressors, Frame, Scratch, WireError, decode};

fuzz_target!(|data: &[u8]| {
    let mut scratch = Scratch::new();
    match decode(data, Compressors::ALL, &mut scratch) {
        Ok(Some((frame, envelope))) => {
            assert!(envelope.consumed <= data.len());
            match frame {
                Frame::Msg(m) => {
                    let _ = m.body.count();
                    for s in &m.sequences {
                        assert_eq!(s.iter().count(), s.len());
                    }
                }
                Frame::Query(q) => {
                    let _ = q.command.count();
                }
            }
        }
        Ok(None) => {}
        Err(WireError::Reply(envelope, error)) => {
            assert!(envelope.consumed <= data.len());
            assert_ne!(error.code.0, 0);
        }
        Err(WireError::Close(_)) => {}
    }
});
