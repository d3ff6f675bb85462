//! A distinguished name as RFC 2253 spells it, in the way of OpenSSL, which MongoDB names users by: last attribute first,
//! names of attributes where there are some, bytes that are no printable ASCII as `\C3\BC`.

use std::fmt::Write;
use x509_parser::asn1_rs::{Any, Tag};
use x509_parser::x509::X509Name;

/// OpenSSL's short names.
const NAMES: &[(&str, &str)] = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.15", "businessCategory"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.20", "telephoneNumber"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.44", "generationQualifier"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.65", "pseudonym"),
    ("2.5.4.97", "organizationIdentifier"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.3", "mail"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
    ("1.2.840.113549.1.9.2", "unstructuredName"),
    ("1.3.6.1.4.1.311.60.2.1.1", "jurisdictionL"),
    ("1.3.6.1.4.1.311.60.2.1.2", "jurisdictionST"),
    ("1.3.6.1.4.1.311.60.2.1.3", "jurisdictionC"),
];

/// `None` where a value is no text.
pub(crate) fn rfc2253(name: &X509Name<'_>) -> Option<String> {
    let mut out = String::new();
    let rdns: Vec<_> = name.iter().collect();
    for rdn in rdns.into_iter().rev() {
        let parts: Vec<_> = rdn.iter().collect();
        for (i, part) in parts.into_iter().rev().enumerate() {
            if !out.is_empty() {
                out.push(if i == 0 { ',' } else { '+' });
            }
            let oid = part.attr_type().to_id_string();
            let known = NAMES.iter().find(|(id, _)| *id == oid).map(|(_, name)| *name);
            out.push_str(known.unwrap_or(&oid));
            out.push('=');
            escape(&mut out, &text(part.attr_value())?);
        }
    }
    Some(out)
}

/// A value's text, whatever kind of string it is.
pub(crate) fn text(value: &Any<'_>) -> Option<String> {
    let data = value.data;
    match value.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String | Tag::VisibleString | Tag::NumericString => {
            std::str::from_utf8(data).ok().map(str::to_owned)
        }
        // Latin-1, whatever the standard says.
        Tag::TeletexString => Some(data.iter().map(|b| char::from(*b)).collect()),
        Tag::BmpString if data.len().is_multiple_of(2) => {
            let units = data.chunks_exact(2).map(|c| u16::from_be_bytes([c[0], c[1]]));
            char::decode_utf16(units).collect::<Result<_, _>>().ok()
        }
        Tag::UniversalString if data.len().is_multiple_of(4) => data
            .chunks_exact(4)
            .map(|c| char::from_u32(u32::from_be_bytes([c[0], c[1], c[2], c[3]])))
            .collect(),
        _ => None,
    }
}

fn escape(out: &mut String, value: &str) {
    let bytes = value.as_bytes();
    for (i, b) in bytes.iter().enumerate() {
        let edge = (*b == b' ' && (i == 0 || i + 1 == bytes.len())) || (*b == b'#' && i == 0);
        match b {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => out.extend(['\\', char::from(*b)]),
            _ if edge => out.extend(['\\', char::from(*b)]),
            0x20..=0x7e => out.push(char::from(*b)),
            _ => drop(write!(out, "\\{b:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};
    use x509_parser::prelude::{FromDer, X509Certificate};

    fn of(fields: &[(DnType, DnValue)]) -> Option<String> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in fields {
            params.distinguished_name.push(kind.clone(), value.clone());
        }
        let cert = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let (_, cert) = X509Certificate::from_der(cert.der()).unwrap();
        rfc2253(cert.subject())
    }
    fn utf8(s: &str) -> DnValue {
        DnValue::Utf8String(s.to_owned())
    }

    // Each was shown to a server 6.0.5, which logged it so.
    #[test]
    fn the_last_attribute_comes_first_by_its_short_name() {
        let email = DnType::CustomDnType(vec![1, 2, 840, 113549, 1, 9, 1]);
        let odd = DnType::CustomDnType(vec![2, 3, 4, 5]);
        let fields = [
            (DnType::CountryName, utf8("DE")),
            (DnType::StateOrProvinceName, utf8("Hessen")),
            (DnType::OrganizationName, utf8("Test, Inc.")),
            (odd, utf8("odd value")),
            (DnType::CommonName, utf8("the client")),
            (email, utf8("a@b.c")),
        ];
        let want = "emailAddress=a@b.c,CN=the client,2.3.4.5=odd value,O=Test\\, Inc.,ST=Hessen,C=DE";
        assert_eq!(of(&fields).as_deref(), Some(want));
    }

    #[test]
    fn what_could_be_read_otherwise_is_escaped() {
        for (value, want) in [
            ("Grün", "CN=Gr\\C3\\BCn"),
            (" lead trail ", "CN=\\ lead trail\\ "),
            ("#leading", "CN=\\#leading"),
            ("a=b", "CN=a=b"),
            ("\"q\" + <Co>; \\ #1", "CN=\\\"q\\\" \\+ \\<Co\\>\\; \\\\ #1"),
            ("a,O=admin", "CN=a\\,O=admin"),
            ("nul\0", "CN=nul\\00"),
            ("", "CN="),
        ] {
            assert_eq!(of(&[(DnType::CommonName, utf8(value))]).as_deref(), Some(want));
        }
    }

    #[test]
    fn other_kinds_of_strings_are_the_same_text() {
        let bmp = DnValue::BmpString("Grün".try_into().unwrap());
        assert_eq!(of(&[(DnType::CommonName, bmp)]).as_deref(), Some("CN=Gr\\C3\\BCn"));
        let printable = DnValue::PrintableString("plain".try_into().unwrap());
        assert_eq!(of(&[(DnType::CommonName, printable)]).as_deref(), Some("CN=plain"));
    }
}
