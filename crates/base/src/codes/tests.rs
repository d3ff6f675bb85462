//! The classes beside the lists that are documented: of the drivers' specifications (discovery and monitoring, retryable
//! reads and writes), of the server's error categories, and of what a write command does with a failure.

use super::*;

#[test]
fn table_is_ascending_and_names_are_unique() {
    assert!(TABLE.windows(2).all(|w| w[0].0 < w[1].0));
    let mut names: Vec<_> = TABLE.iter().map(|r| r.1).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|w| w[0] != w[1]));
}

#[test]
fn unnamed_numbers_are_locations() {
    assert_eq!(ErrorCode(31249).name(), "Location31249");
    assert_eq!(ErrorCode(11000).name(), "DuplicateKey");
    assert_eq!(ErrorCode::NotWritablePrimary.0, 10107);
    assert!(ErrorCode::NotWritablePrimary.is(class::RETRIABLE | class::NOT_PRIMARY));
}

/// Bit, name in a failure, and the numbers that have it.
const LISTS: &[(u32, &str, &[i32])] = &[
    (
        RETRIABLE,
        "retriable",
        &[
            6, 7, 89, 91, 134, 189, 262, 358, 402, 406, 407, 412, 453, 462, 9001, 10107, 11600, 11602, 13435,
            13436, 91331, 10_045_600,
        ],
    ),
    // Conflicts; those of a snapshot (239, 246, 250, 272); stale routing but for a code that no server sends any more;
    // tenant migrations; a shard that cannot refresh now; a transaction that is not there.
    (
        TRANSIENT_IN_TXN,
        "transient in a transaction",
        &[24, 112, 150, 239, 246, 249, 250, 251, 267, 272, 321, 325, 343, 13388],
    ),
    (RESUMABLE, "resumable", &[43, 63, 133, 150, 234, 367, 13388]),
    (NOT_PRIMARY, "not writable primary", &[10058, 10107, 13435]),
    (RECOVERING, "node is recovering", &[91, 189, 11600, 11602, 13436]),
    (SHUTDOWN, "shutdown", &[91, 11600]),
    (CLOSES, "closes", &[223, 233, 288, 303, 354, 398]),
    (OVERLOAD, "overload", &[433, 449, 450, 462]),
    (STALE_ROUTING, "stale routing", &[63, 150, 249, 13388]),
    (
        INTERRUPTION,
        "interruption",
        &[24, 50, 237, 262, 279, 281, 282, 290, 355, 453, 11600, 11601, 11602, 46841, 91331, 10_045_600],
    ),
    (NETWORK, "network", &[6, 7, 89, 9001]),
    (RETRYABLE_WRITE, "retryable write", &[6, 7, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436]),
    (
        RETRYABLE_READ,
        "retryable read",
        &[6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436],
    ),
    (CURSOR_INVALIDATED, "cursor invalidated", &[43, 96, 175, 237, 314]),
    (EXCEEDED_TIME, "exceeded a time limit", &[50, 202, 262, 290, 407]),
    (
        ENDS_COMMAND,
        "ends the command",
        &[
            24, 50, 91, 189, 217, 225, 237, 262, 279, 281, 282, 290, 320, 321, 325, 355, 453, 10058, 10107,
            11600, 11601, 11602, 13435, 13436, 46841, 91331, 10_045_600,
        ],
    ),
    (ENDS_BATCH, "ends the batch", &[146, 14031]),
];

#[test]
fn every_class_has_the_codes_that_are_documented_for_it() {
    for (bit, name, codes) in LISTS {
        let marked: Vec<i32> = TABLE.iter().filter(|row| row.2 & bit != 0).map(|row| row.0).collect();
        assert_eq!(marked, *codes, "{name}");
    }
    let listed = LISTS.iter().fold(0, |all, (bit, ..)| all | bit);
    assert!(TABLE.iter().all(|row| row.2 & !listed == 0), "a class without a list");
    assert_eq!(LISTS.len() as u32, listed.count_ones(), "a class with two lists");
}

/// What the classes must have to do with one another.
#[test]
fn classes_fit_together() {
    for (number, name, class) in TABLE {
        let has = |bits: u32| class & bits != 0;
        assert!(!has(SHUTDOWN) || has(RECOVERING), "{name}: a node that shuts down is in no state to serve");
        assert!(!has(RETRYABLE_WRITE) || has(RETRYABLE_READ), "{name}: a read is repeated where a write is");
        assert!(!has(RETRYABLE_READ) || has(RETRIABLE), "{name}: drivers repeat what servers do");
        assert!(!has(NETWORK) || has(RETRIABLE), "{name}");
        assert!(!(has(ENDS_COMMAND) && has(ENDS_BATCH)), "{name}: told once");
        assert!(
            !has(INTERRUPTION) || has(ENDS_COMMAND),
            "{number}: the operation is over, not one of its writes"
        );
        let office = has(NOT_PRIMARY | RECOVERING);
        assert!(!office || has(ENDS_COMMAND), "{number}: no write of the command can succeed here");
    }
}
