//! A client in the simulation: one connection, one command at a time. Where that is asked for it logs in ([`crate::login`]).

use crate::login;
use pando_bson::{DocBuf, RawDoc};
use pando_env::{Env, Stream};
use pando_wire::{Compressors, Frame, Scratch, decode, encode_msg, flags};
use std::io;
use std::time::Duration;

/// How long a client waits for a reply before it gives the connection up.
const REPLY_LIMIT: Duration = Duration::from_secs(60);

pub struct Client {
    env: Env,
    stream: Box<dyn Stream>,
    input: Vec<u8>,
    scratch: Scratch,
    next_id: i32,
    logged_in: bool,
    patience: Duration,
}

impl Client {
    pub async fn connect(env: &Env, addr: &str) -> io::Result<Client> {
        let stream = env.net.connect(addr.to_owned()).await?;
        let (input, scratch) = (Vec::new(), Scratch::new());
        Ok(Client {
            env: env.clone(),
            stream,
            input,
            scratch,
            next_id: 1,
            logged_in: false,
            patience: REPLY_LIMIT,
        })
    }

    /// Waits so long for a reply instead.
    pub(crate) fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }
    pub(crate) fn nonce(&self) -> [u8; 18] {
        let mut nonce = [0; 18];
        self.env.rng.fill(&mut nonce);
        nonce
    }
    /// Sends a command that gets no reply (`w: 0`).
    pub async fn send_only(&mut self, body: &RawDoc) -> io::Result<()> {
        let mut out = Vec::new();
        let id = self.next_id;
        self.next_id += 1;
        encode_msg(&mut out, id, 0, flags::MORE_TO_COME, body, &[]);
        self.stream.write_all(&out).await
    }

    /// Runs a command and returns its reply document, whatever it says; logs in first where it has to.
    pub async fn command(&mut self, body: &RawDoc) -> io::Result<DocBuf> {
        let reply = self.run(body).await?;
        if self.logged_in || !login::is_asked_for(&reply) || !login::run(self).await? {
            return Ok(reply);
        }
        self.logged_in = true;
        self.run(body).await
    }

    pub(crate) async fn run(&mut self, body: &RawDoc) -> io::Result<DocBuf> {
        let mut out = Vec::new();
        let id = self.next_id;
        self.next_id += 1;
        encode_msg(&mut out, id, 0, 0, body, &[]);
        self.stream.write_all(&out).await?;
        loop {
            let env = self.env.clone();
            let decoded = decode(&self.input, Compressors::NONE, &mut self.scratch);
            match decoded {
                Ok(Some((Frame::Msg(m), envelope))) => {
                    let reply = m.body.to_buf();
                    self.input.drain(..envelope.consumed);
                    return Ok(reply);
                }
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
            let read = self.stream.read(&mut self.input, 64 * 1024);
            match env.timeout(self.patience, read).await {
                Some(Ok(0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(read) => read?,
                None => return Err(io::ErrorKind::TimedOut.into()),
            };
        }
    }
}
