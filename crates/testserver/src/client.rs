//! A client of one connection: OP_MSG out, OP_MSG in.

use pando_auth::{Mechanism, Password, scram};
use pando_bson::{Binary, Bson, DocBuf, Document, RawDoc, doc};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const OP_MSG: i32 = 2013;
pub const MORE_TO_COME: u32 = 1 << 1;
pub const EXHAUST_ALLOWED: u32 = 1 << 16;

/// One connection.
pub struct Client {
    stream: TcpStream,
    next_id: i32,
    /// Database of commands that name none.
    pub db: String,
    /// Flags of the last reply.
    pub flags: u32,
}

impl Client {
    pub async fn connect(port: u16) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket option");
        Client { stream, next_id: 0, db: "test".to_owned(), flags: 0 }
    }
    /// Writes a message without waiting for the reply.
    pub async fn send(&mut self, command: &RawDoc, flags: u32) {
        self.send_sections(command, &[], flags).await;
    }
    /// `more`: what stands behind the command's own section.
    async fn send_sections(&mut self, command: &RawDoc, more: &[u8], flags: u32) {
        self.next_id += 1;
        let len = command.byte_len() + 21 + more.len();
        let mut out = Vec::with_capacity(len);
        for n in [len as i32, self.next_id, 0, OP_MSG] {
            out.extend_from_slice(&n.to_le_bytes());
        }
        out.extend_from_slice(&flags.to_le_bytes());
        out.push(0);
        out.extend_from_slice(command.as_bytes());
        out.extend_from_slice(more);
        self.stream.write_all(&out).await.expect("the server reads");
    }
    /// Runs a command with a document sequence of that name behind it.
    pub async fn run_with_sequence(&mut self, command: Document, name: &str, docs: &[Document]) -> Document {
        let mut sequence = vec![0; 4];
        sequence.extend_from_slice(name.as_bytes());
        sequence.push(0);
        docs.iter().for_each(|d| sequence.extend_from_slice(d.to_raw().as_bytes()));
        let len = sequence.len() as i32;
        sequence[..4].copy_from_slice(&len.to_le_bytes());
        let mut more = vec![1];
        more.extend(sequence);
        let raw = self.with_db(command);
        self.send_sections(&raw, &more, 0).await;
        Document::from(&*self.receive().await)
    }
    /// The same where the server may end meanwhile: `None` then.
    pub async fn try_run(&mut self, command: Document) -> Option<Document> {
        let raw = self.with_db(command);
        self.next_id += 1;
        let mut out = Vec::with_capacity(raw.as_bytes().len() + 21);
        for n in [raw.as_bytes().len() as i32 + 21, self.next_id, 0, OP_MSG, 0] {
            out.extend_from_slice(&n.to_le_bytes());
        }
        out.push(0);
        out.extend_from_slice(raw.as_bytes());
        self.stream.write_all(&out).await.ok()?;
        let mut header = [0; 16];
        self.stream.read_exact(&mut header).await.ok()?;
        let len = i32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let mut rest = vec![0; len.checked_sub(16)?];
        self.stream.read_exact(&mut rest).await.ok()?;
        Some(Document::from(RawDoc::trusted(rest.get(5..)?)))
    }
    /// Reads one reply.
    pub async fn receive(&mut self) -> DocBuf {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head).await.expect("the server replies");
        let len = i32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let mut body = vec![0; len - 16];
        self.stream.read_exact(&mut body).await.expect("the server replies in full");
        self.flags = u32::from_le_bytes([body[0], body[1], body[2], body[3]]);
        assert_eq!(body[4], 0, "the reply is one body section");
        RawDoc::validate(&body[5..]).expect("the reply is valid BSON").to_buf()
    }
    fn with_db(&self, mut command: Document) -> DocBuf {
        if !command.contains("$db") {
            command.push("$db", self.db.as_str());
        }
        command.to_raw()
    }
    /// Runs a command and returns whatever comes back.
    pub async fn run(&mut self, command: Document) -> Document {
        let raw = self.with_db(command);
        self.send(&raw, 0).await;
        Document::from(&*self.receive().await)
    }
    /// Runs a command on `admin`.
    pub async fn admin(&mut self, mut command: Document) -> Document {
        command.set("$db", "admin");
        self.ok(command).await
    }
    /// Logs in with SCRAM-SHA-256, which must succeed.
    pub async fn log_in(&mut self, db: &str, user: &str, password: &str) {
        let binary = |bytes: Vec<u8>| Bson::Binary(Binary { subtype: 0, bytes });
        let payload = |reply: &Document| match reply.get("payload") {
            Some(Bson::Binary(b)) => b.bytes.clone(),
            other => panic!("no payload: {other:?}"),
        };
        let (mut mine, first) =
            scram::Client::start(Mechanism::ScramSha256, user, Password::new(password), &[7; 18]);
        let options = doc! { "skipEmptyExchange": true };
        let start = doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": binary(first),
        "options": options, "$db": db };
        let challenge = self.ok(start).await;
        let proof = mine.prove(&payload(&challenge)).expect("a challenge");
        let proof = doc! { "saslContinue": 1, "conversationId": 1, "payload": binary(proof), "$db": db };
        let last = self.ok(proof).await;
        mine.verify(&payload(&last)).expect("the server knows the password");
    }
    /// Runs a command that must succeed, its write concern included.
    pub async fn ok(&mut self, command: Document) -> Document {
        let shown = format!("{command:?}");
        let reply = self.run(command).await;
        let fine =
            reply.get("ok").and_then(Bson::as_f64) == Some(1.0) && reply.get("writeConcernError").is_none();
        assert!(fine, "{shown} gave {reply:?}");
        reply
    }
    /// Runs a command that must fail; returns code and message.
    pub async fn err(&mut self, command: Document) -> (i32, String) {
        let shown = format!("{command:?}");
        let reply = self.run(command).await;
        assert_eq!(reply.get("ok").and_then(Bson::as_f64), Some(0.0), "{shown} gave {reply:?}");
        let code = reply.get("code").and_then(Bson::as_i64).unwrap_or(0) as i32;
        (code, reply.get("errmsg").and_then(Bson::as_str).unwrap_or_default().to_owned())
    }
    /// All documents of a cursor-returning command.
    pub async fn all(&mut self, command: Document) -> Vec<Document> {
        let mut reply = self.ok(command).await;
        let mut out = Vec::new();
        loop {
            let Some(Bson::Document(mut cursor)) = reply.remove("cursor") else {
                panic!("no cursor: {reply:?}")
            };
            let batch = cursor.remove("firstBatch").or_else(|| cursor.remove("nextBatch"));
            let Some(Bson::Array(batch)) = batch else { panic!("no batch: {cursor:?}") };
            out.extend(batch.into_iter().map(|v| match v {
                Bson::Document(d) => d,
                other => panic!("not a document: {other:?}"),
            }));
            let id = cursor.get("id").and_then(Bson::as_i64).unwrap_or(0);
            if id == 0 {
                return out;
            }
            let ns = cursor.get("ns").and_then(Bson::as_str).unwrap_or_default().to_owned();
            let (db, coll) = ns.split_once('.').expect("a namespace");
            let mut next = Document::new();
            next.push("getMore", id);
            next.push("collection", coll);
            next.push("$db", db);
            reply = self.ok(next).await;
        }
    }
}
