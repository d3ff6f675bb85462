//! `pando up --members 3` as a user sees it: real processes, one of them killed, data that stay.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod several;

use pando_bson::{Bson, doc};
use several::{Dir, Up, free_ports, on_any, pid_in, refused, signal};
use std::net::TcpListener;

#[test]
fn a_set_survives_the_loss_of_a_member_and_a_restart() {
    let dir = Dir::new("set");
    let port = free_ports(3);
    let mut up = Up::start(&dir.0, port, &["--members", "3"]);
    up.until("replicaSet=rs0");
    let primary = pid_in(&up.until("PRIMARY"));
    let insert = |id: i32| {
        doc! { "insert": "c", "documents": [{ "_id": id }], "writeConcern": { "w": "majority" } }
    };
    assert!(on_any(port, 3, "t", &insert(1)).get("writeConcernError").is_none());

    let (code, text) = refused(&dir.0, &["up", "--members", "3", "--port", &port.to_string()]);
    assert!(code == 100 && text.contains("a server already runs on"), "{text}");

    signal("-KILL", primary);
    let ended = up.until("ended (signal 9)");
    up.until(&format!("{} is started again", ended.split(' ').next().unwrap()));
    on_any(port, 3, "t", &insert(2));
    up.until(&format!("{} SECONDARY", ended.split(' ').next().unwrap()));
    assert_eq!(up.interrupt(), 0);

    let up = Up::start(&dir.0, port, &["--members", "3"]);
    let n = on_any(port, 3, "t", &doc! { "count": "c" });
    assert_eq!(n.get("n").and_then(Bson::as_i64), Some(2), "{n:?}");
    assert_eq!(up.interrupt(), 0);
    for i in 1..=3 {
        let lock = dir.0.join(format!("pando-data/rs0/member{i}/mongod.lock"));
        assert_eq!(std::fs::metadata(lock).unwrap().len(), 0, "every member stopped cleanly");
    }

    let (code, text) = refused(&dir.0, &["up", "--members", "5", "--port", &port.to_string()]);
    assert!(code == 100 && text.contains("holds a set of 3 members: say --members 3"), "{text}");
}

#[test]
fn what_cannot_work_is_refused_with_words_that_help() {
    let dir = Dir::new("refused");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, text) = refused(&dir.0, &["up", "--members", "3", "--port", &port]);
    assert!(code == 100 && text.contains("Address already in use") && text.contains("--port"), "{text}");
    for (args, words) in [
        (&["up", "--members", "4"][..], "an odd number from 1 to 7"),
        (&["up", "--members", "9"], "an odd number from 1 to 7"),
        (&["up", "--members=x"], "an odd number from 1 to 7"),
        (&["up", "--members", "3", "--fork"], "--fork does not go together with --members"),
        (&["up", "--members", "3", "--nosuch"], "unrecognised option '--nosuch'"),
    ] {
        let (code, text) = refused(&dir.0, args);
        assert!(code == 2 && text.contains(words), "{args:?}: {text}");
    }
}
