//! Names of certificates: as they come (DER), and as text, which decides who is a member.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pando_auth::certificate::are_of_one_cluster;

fuzz_target!(|data: &[u8]| {
    let _ = pando_tls::subject_of(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (a, b) = text.split_once('\n').unwrap_or((text, text));
    assert_eq!(are_of_one_cluster(a, b), are_of_one_cluster(b, a));
    // Whoever adds a unit or an organisation is somebody else.
    if are_of_one_cluster(a, b) && !b.ends_with('\\') {
        assert!(!are_of_one_cluster(a, &format!("{b},OU=one more")), "{a} {b}");
    }
});
