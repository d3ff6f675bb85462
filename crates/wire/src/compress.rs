//! OP_COMPRESSED. A message is decompressed into exactly the size it claims, or the connection closes.
//!
//! Nothing uninitialised can be answered with: output is what the codec wrote, and its length is checked
//! against the claim before anyone sees it. Output buffers grow with what really comes out (or, where the
//! codec needs its room at once, are bounded by a multiple of what really came in).

use crate::WireError;
use crate::header::{Header, op};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use pando_base::limits;
use std::io::Read;

/// A compression method of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Compressor {
    Snappy = 1,
    Zlib = 2,
    Zstd = 3,
}

impl Compressor {
    pub const ALL: [Compressor; 3] = [Compressor::Snappy, Compressor::Zlib, Compressor::Zstd];

    pub fn name(self) -> &'static str {
        match self {
            Compressor::Snappy => "snappy",
            Compressor::Zlib => "zlib",
            Compressor::Zstd => "zstd",
        }
    }
    pub fn from_name(name: &str) -> Option<Compressor> {
        Compressor::ALL.into_iter().find(|c| c.name() == name)
    }
    fn from_id(id: u8) -> Option<Compressor> {
        Compressor::ALL.into_iter().find(|c| *c as u8 == id)
    }
}

/// A set of compressors: those a handshake agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compressors(u8);

impl Compressors {
    pub const NONE: Compressors = Compressors(0);
    pub const ALL: Compressors = Compressors(0b1110);

    #[must_use]
    pub fn with(self, c: Compressor) -> Compressors {
        Compressors(self.0 | 1 << c as u8)
    }
    pub fn contains(self, c: Compressor) -> bool {
        self.0 & 1 << c as u8 != 0
    }
    /// One bit per compressor, to be kept in an atomic.
    pub fn bits(self) -> u8 {
        self.0
    }
    pub fn from_bits(bits: u8) -> Compressors {
        Compressors(bits & Compressors::ALL.0)
    }
}

/// zlib's and zstd's levels for replies: quick ones, since the server pays.
const ZLIB_LEVEL: u32 = 3;
const ZSTD_LEVEL: i32 = 3;
/// Snappy cannot expand by more than this (a three-byte copy yields 64 bytes).
const SNAPPY_EXPANSION_MAX: usize = 24;
/// zstd is given its whole room at once only up to this expansion; beyond, it is read as a stream.
const ZSTD_TRUSTED_EXPANSION: usize = 64;

/// Buffers and codec contexts that a connection keeps between messages.
#[derive(Default)]
pub struct Scratch {
    message: Vec<u8>,
    zstd_in: Option<zstd::bulk::Decompressor<'static>>,
    zstd_out: Option<zstd::bulk::Compressor<'static>>,
    packed: Vec<u8>,
}

impl Scratch {
    pub fn new() -> Scratch {
        Scratch::default()
    }

    /// Gives memory back; for connections that fall idle.
    pub fn release(&mut self) {
        *self = Scratch::default();
    }

    /// Unpacks an OP_COMPRESSED message into a whole plain one (header first); returns how it was packed,
    /// its opcode, and its bytes.
    pub(crate) fn decompress(
        &mut self,
        message: &[u8],
        header: Header,
        allowed: Compressors,
    ) -> Result<(Compressor, i32, &[u8]), WireError> {
        const SHORT: WireError = WireError::Close("OP_COMPRESSED is too short");
        let rest = &message[Header::LEN..];
        let Some((original, rest)) = rest.split_first_chunk::<4>() else { return Err(SHORT) };
        let Some((claimed, rest)) = rest.split_first_chunk::<4>() else { return Err(SHORT) };
        let Some((id, packed)) = rest.split_first() else { return Err(SHORT) };
        let op_code = i32::from_le_bytes(*original);
        if op_code == op::COMPRESSED {
            return Err(WireError::Close("OP_COMPRESSED within OP_COMPRESSED"));
        }
        let compressor = match Compressor::from_id(*id) {
            Some(c) if allowed.contains(c) => c,
            _ => return Err(WireError::Close("compressor was not negotiated")),
        };
        let claimed = usize::try_from(i32::from_le_bytes(*claimed)).unwrap_or(usize::MAX);
        if claimed > limits::WIRE_MESSAGE_BYTES_MAX - Header::LEN {
            return Err(WireError::Close("uncompressed size out of bounds"));
        }

        self.message.clear();
        let length = Header::LEN + claimed;
        Header { length, op_code, ..header }.write(&mut self.message);
        let done = match compressor {
            Compressor::Snappy => unsnap(packed, claimed, &mut self.message),
            Compressor::Zlib => inflate(packed, claimed, &mut self.message),
            Compressor::Zstd => self.unzstd(packed, claimed),
        };
        if done.is_none() || self.message.len() != length {
            return Err(WireError::Close("compressed bytes are not what they claim"));
        }
        Ok((compressor, op_code, &self.message))
    }

    fn unzstd(&mut self, packed: &[u8], claimed: usize) -> Option<()> {
        if claimed > packed.len().saturating_mul(ZSTD_TRUSTED_EXPANSION) + limits::WIRE_INFLATE_STEP_BYTES {
            // Room for one byte more than claimed shows an overrun.
            let stream = zstd::stream::read::Decoder::with_buffer(packed).ok()?;
            return stream.take(claimed as u64 + 1).read_to_end(&mut self.message).ok().map(|_| ());
        }
        if self.zstd_in.is_none() {
            self.zstd_in = Some(zstd::bulk::Decompressor::new().ok()?);
        }
        let start = self.message.len();
        self.message.resize(start + claimed, 0);
        let written = self.zstd_in.as_mut()?.decompress_to_buffer(packed, &mut self.message[start..]).ok()?;
        (written == claimed).then_some(())
    }
}

fn unsnap(packed: &[u8], claimed: usize, out: &mut Vec<u8>) -> Option<()> {
    let really = snap::raw::decompress_len(packed).ok()?;
    if really != claimed || claimed > packed.len().saturating_mul(SNAPPY_EXPANSION_MAX) {
        return None;
    }
    let start = out.len();
    out.resize(start + claimed, 0);
    let written = snap::raw::Decoder::new().decompress(packed, &mut out[start..]).ok()?;
    (written == claimed).then_some(())
}

fn inflate(packed: &[u8], claimed: usize, out: &mut Vec<u8>) -> Option<()> {
    let end = out.len() + claimed;
    let mut codec = Decompress::new(true);
    loop {
        // As much again as came out so far, but never more than one byte beyond the claim.
        let step = out.len().max(limits::WIRE_INFLATE_STEP_BYTES).min(end + 1 - out.len());
        out.reserve_exact(step);
        let (before_in, before_out) = (codec.total_in(), out.len());
        let rest = packed.get(codec.total_in() as usize..)?;
        let status = codec.decompress_vec(rest, out, FlushDecompress::None).ok()?;
        if out.len() > end {
            return None;
        }
        if status == Status::StreamEnd {
            return (out.len() == end && codec.total_in() as usize == packed.len()).then_some(());
        }
        if codec.total_in() == before_in && out.len() == before_out {
            return None;
        }
    }
}

/// What a message holds besides what is compressed: its header, and how it is packed.
pub const COMPRESSED_HEAD_BYTES: usize = Header::LEN + 9;

/// What a compressor was given and what it made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    pub plain_bytes: usize,
    pub packed_bytes: usize,
}

/// Replaces the plain message at `out[start..]` by its OP_COMPRESSED form.
///
/// Should a codec fail, or the result not fit a message, the plain message stays: that is always legal.
pub fn compress(
    out: &mut Vec<u8>,
    start: usize,
    compressor: Compressor,
    scratch: &mut Scratch,
) -> Option<Packed> {
    let header = Header::read(&out[start..])?;
    let plain = &out[start + Header::LEN..];
    let packed = &mut scratch.packed;
    packed.clear();
    let done = match compressor {
        Compressor::Snappy => {
            packed.resize(snap::raw::max_compress_len(plain.len()), 0);
            snap::raw::Encoder::new().compress(plain, packed).ok().map(|n| packed.truncate(n))
        }
        Compressor::Zlib => deflate(plain, packed),
        Compressor::Zstd => {
            if scratch.zstd_out.is_none() {
                scratch.zstd_out = zstd::bulk::Compressor::new(ZSTD_LEVEL).ok();
            }
            packed.resize(zstd::zstd_safe::compress_bound(plain.len()), 0);
            let codec = scratch.zstd_out.as_mut();
            codec
                .and_then(|c| c.compress_to_buffer(plain, packed.as_mut_slice()).ok())
                .map(|n| packed.truncate(n))
        }
    };
    let length = COMPRESSED_HEAD_BYTES + packed.len();
    if done.is_none() || length > limits::WIRE_MESSAGE_BYTES_MAX {
        return None;
    }
    let was = Packed { plain_bytes: plain.len(), packed_bytes: packed.len() };
    let claimed = plain.len() as u32;
    out.truncate(start);
    Header { length, op_code: op::COMPRESSED, ..header }.write(out);
    out.extend_from_slice(&header.op_code.to_le_bytes());
    out.extend_from_slice(&claimed.to_le_bytes());
    out.push(compressor as u8);
    out.extend_from_slice(packed);
    Some(was)
}

fn deflate(plain: &[u8], packed: &mut Vec<u8>) -> Option<()> {
    let mut codec = Compress::new(Compression::new(ZLIB_LEVEL), true);
    packed.reserve_exact(plain.len() / 2 + 256);
    loop {
        let rest = plain.get(codec.total_in() as usize..)?;
        match codec.compress_vec(rest, packed, FlushCompress::Finish).ok()? {
            Status::StreamEnd => return Some(()),
            _ => packed.reserve(packed.capacity()),
        }
    }
}
