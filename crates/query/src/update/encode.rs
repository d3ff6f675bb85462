//! Documents written piece by piece to the end of a buffer.

use pando_bson::{Elem, ElementType};

/// Starts a document at the end of `out`.
pub(super) fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    start
}

/// Closes the document that began at `start`.
pub(super) fn end(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let len = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&len.to_le_bytes());
}

pub(super) fn put_head(out: &mut Vec<u8>, ty: ElementType, name: &[u8]) {
    out.push(ty as u8);
    out.extend_from_slice(name);
    out.push(0);
}

/// Type byte and position of an array element.
pub(super) fn put_indexed_head(out: &mut Vec<u8>, ty: ElementType, index: usize) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut n = index;
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    put_head(out, ty, &digits[at..]);
}

pub(super) fn put_elem(out: &mut Vec<u8>, e: Elem<'_>) {
    put_head(out, e.ty, e.name_bytes());
    out.extend_from_slice(e.data());
}

pub(super) fn elem_bytes(e: &Elem<'_>) -> usize {
    2 + e.name_bytes().len() + e.data().len()
}
