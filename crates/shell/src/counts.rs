//! What a connection counts: bytes as they came and as they were before compression, and `hello` that is streamed.

use pando_bson::RawDoc;
use pando_command::metrics::{Connections, Metrics};
use pando_metrics::Gauge;
use pando_wire::{COMPRESSED_HEAD_BYTES, Envelope, Frame, Header, Packed, WireError};

/// A request as it came and as it was before it was compressed.
pub(crate) fn count_request(
    metrics: &Metrics,
    len: usize,
    decoded: &Result<Option<(Frame<'_>, Envelope)>, WireError>,
) {
    let envelope = match decoded {
        Ok(Some((_, envelope))) | Err(WireError::Reply(envelope, _)) => Some(envelope),
        _ => None,
    };
    metrics.network.requests.inc();
    metrics.network.bytes_in.add(envelope.map_or(len, |e| e.plain_bytes) as u64);
    let Some((compressor, plain)) = envelope.and_then(|e| Some((e.compressor?, e.plain_bytes))) else {
        return;
    };
    if let Some(counts) = metrics.compression.of(compressor.name()) {
        counts.decompressor_bytes_in.add(len.saturating_sub(COMPRESSED_HEAD_BYTES) as u64);
        counts.decompressor_bytes_out.add(plain.saturating_sub(Header::LEN) as u64);
    }
}

/// A reply and what the compressor made of it.
pub(crate) fn count_packed(metrics: &Metrics, envelope: &Envelope, packed: Option<Packed>) {
    let (Some(packed), Some(compressor)) = (packed, envelope.compressor) else { return };
    if let Some(counts) = metrics.compression.of(compressor.name()) {
        counts.compressor_bytes_in.add(packed.plain_bytes as u64);
        counts.compressor_bytes_out.add(packed.packed_bytes as u64);
    }
}

/// Counts a connection while `hello` is streamed on it.
pub(crate) struct Streaming<'a>(&'a Gauge);

impl<'a> Streaming<'a> {
    pub(crate) fn begin(counts: &'a Connections, request: &RawDoc) -> Option<Streaming<'a>> {
        let gauge = match request.first()?.name() {
            "hello" => &counts.exhaust_hello,
            "isMaster" | "ismaster" => &counts.exhaust_is_master,
            _ => return None,
        };
        gauge.add(1);
        Some(Streaming(gauge))
    }
}

impl Drop for Streaming<'_> {
    fn drop(&mut self) {
        self.0.sub(1);
    }
}
