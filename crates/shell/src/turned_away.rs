//! A connection beyond the bound (`--maxConns`).
//!
//! Closed without a word, it would look to the other members like the end of this process, and to a driver like a broken
//! network. So its first message is read: a member's is served, in a reserve of its own; everybody else is told why
//! there is no room.

use crate::connection::{Service, serve_from};
use pando_base::{Error, ErrorCode, limits};
use pando_bson::RawDoc;
use pando_command::reply::error_reply;
use pando_command::{Node, reply::Encoded};
use pando_env::Stream;
use pando_wire::{Compressors, Envelope, Frame, Scratch};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// How many are looked at, and how many members stand beyond the bound.
#[derive(Clone, Default)]
pub(crate) struct Beyond {
    looked_at: Arc<AtomicUsize>,
    members: Arc<AtomicUsize>,
}

/// One of so many, until it is dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(of: &Arc<AtomicUsize>, most: usize) -> Option<Place> {
        let taken = of.fetch_update(SeqCst, SeqCst, |n| (n < most).then_some(n + 1)).is_ok();
        taken.then(|| Place(of.clone()))
    }
}
impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Looks at one connection beyond the bound; too many of them at a time are closed at once.
pub(crate) fn look_at<S: Node>(beyond: &Beyond, service: &Service<S>, stream: Box<dyn Stream>) {
    let Some(place) = Place::take(&beyond.looked_at, limits::CONNECTIONS_TURNED_AWAY_MAX) else { return };
    let (beyond, service) = (beyond.clone(), service.clone());
    service.node.instance().env.clone().spawn("connection beyond the bound", async move {
        let Some((stream, first)) = hear(&service, stream).await else { return };
        let Some(member) = Place::take(&beyond.members, limits::CONNECTIONS_RESERVED_FOR_MEMBERS) else {
            return;
        };
        drop(place);
        serve_from(service, stream, first).await;
        drop(member);
    });
}

/// Reads the first message. Comes back with it for a member; anybody else is answered here.
async fn hear<S: Node>(
    service: &Service<S>,
    mut stream: Box<dyn Stream>,
) -> Option<(Box<dyn Stream>, Vec<u8>)> {
    let env = service.node.instance().env.clone();
    let limit = Duration::from_millis(limits::TURN_AWAY_MS);
    let mut input = Vec::new();
    env.timeout(limit, stream.establish()).await?.ok()?;
    env.timeout(limit, read_message(&mut stream, &mut input)).await??;
    let mut scratch = Scratch::new();
    let (frame, envelope) = pando_wire::decode(&input, Compressors::NONE, &mut scratch).ok()??;
    let body = match &frame {
        Frame::Msg(m) => m.body,
        Frame::Query(q) => q.command,
    };
    if body.get("internalClient").is_some() && service.node.is_member_address(&stream.peer_addr()) {
        return Some((stream, input));
    }
    if envelope.wants_reply() {
        let text = "Connection refused because there are too many open connections";
        let reply = error_reply(&Error::new(ErrorCode::HostUnreachable, text));
        let _ = env.timeout(limit, send(&mut stream, &envelope, reply)).await;
    }
    None
}

async fn read_message(stream: &mut Box<dyn Stream>, input: &mut Vec<u8>) -> Option<()> {
    loop {
        match pando_wire::message_len(input) {
            Ok(Some(len)) if len > limits::TURN_AWAY_BYTES_MAX => return None,
            Ok(Some(len)) if input.len() >= len => return Some(()),
            Ok(_) if input.len() <= limits::TURN_AWAY_BYTES_MAX => {}
            _ => return None,
        }
        match stream.read(input, limits::READ_CHUNK_BYTES).await {
            Ok(n) if n > 0 => {}
            _ => return None,
        }
    }
}

async fn send(stream: &mut Box<dyn Stream>, envelope: &Envelope, reply: Encoded) -> std::io::Result<()> {
    let mut out = Vec::new();
    let doc: &RawDoc = reply.doc();
    pando_wire::encode_reply(&mut out, envelope, 1, envelope.request_id, false, doc, &mut Scratch::new());
    stream.write_all(&out).await
}
