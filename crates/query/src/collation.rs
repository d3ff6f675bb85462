//! MongoDB collations on ICU4X.
//!
//! A collation document names a locale and a few options. [`Collation::parse`] checks it with MongoDB's errors
//! and fills in every default, because the stored form must not change its meaning when defaults do.
//!
//! Differences from ICU 57, which MongoDB pins: the rules are those of the CLDR version built in, so single
//! letters may stand elsewhere; text is always normalized; `backwards` is only to be had for locales without
//! own rules (and is on for `fr_CA`).

use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_locale_core::Locale;
use pando_base::{Error, ErrorCode, Result, patience};
use pando_bson::fields::safe_i64;
use pando_bson::{DocBuf, DocBuilder, RawDoc, StringOrder, Value};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The version drivers see in collation documents.
const VERSION: &str = "57.1";

/// The locales that have a collation of their own.
const LOCALES: &[&str] = &[
    "af",
    "am",
    "ar",
    "as",
    "az",
    "be",
    "bg",
    "bn",
    "bo",
    "bs",
    "bs_Cyrl",
    "ca",
    "chr",
    "cs",
    "cy",
    "da",
    "de",
    "de_AT",
    "dsb",
    "dz",
    "ee",
    "el",
    "en",
    "en_US",
    "en_US_POSIX",
    "eo",
    "es",
    "et",
    "fa",
    "fa_AF",
    "fi",
    "fil",
    "fo",
    "fr",
    "fr_CA",
    "ga",
    "gl",
    "gu",
    "ha",
    "haw",
    "he",
    "hi",
    "hr",
    "hsb",
    "hu",
    "hy",
    "id",
    "ig",
    "is",
    "it",
    "ja",
    "ka",
    "kk",
    "kl",
    "km",
    "kn",
    "ko",
    "kok",
    "ky",
    "lb",
    "lkt",
    "ln",
    "lo",
    "lt",
    "lv",
    "mk",
    "ml",
    "mn",
    "mr",
    "ms",
    "mt",
    "my",
    "nb",
    "ne",
    "nl",
    "nn",
    "om",
    "or",
    "pa",
    "pl",
    "ps",
    "pt",
    "ro",
    "ru",
    "se",
    "si",
    "sk",
    "sl",
    "smn",
    "sq",
    "sr",
    "sr_Latn",
    "sv",
    "sw",
    "ta",
    "te",
    "th",
    "to",
    "tr",
    "ug",
    "uk",
    "ur",
    "vi",
    "wae",
    "yi",
    "yo",
    "zh",
    "zh_Hant",
    "zu",
];

/// What may follow `@collation=` after every locale, as clients write it and as Unicode's tags have it.
const VARIANTS: &[(&str, &str)] = &[("search", "search"), ("emoji", "emoji"), ("eor", "eor")];

/// The same for single locales.
const VARIANTS_OF: &[(&str, &[(&str, &str)])] = &[
    ("ar", &[("compat", "compat")]),
    ("bn", &[("traditional", "trad")]),
    ("de", &[("phonebook", "phonebk")]),
    ("de_AT", &[("phonebook", "phonebk")]),
    ("es", &[("traditional", "trad")]),
    ("fi", &[("traditional", "trad")]),
    ("ja", &[("unihan", "unihan")]),
    ("kn", &[("traditional", "trad")]),
    ("ko", &[("searchjl", "searchjl"), ("unihan", "unihan")]),
    ("ln", &[("phonetic", "phonetic")]),
    ("si", &[("dictionary", "dict")]),
    ("sv", &[("standard", "standard")]),
    ("vi", &[("traditional", "trad")]),
    (
        "zh",
        &[
            ("big5han", "big5han"),
            ("gb2312han", "gb2312"),
            ("standard", "standard"),
            ("stroke", "stroke"),
            ("unihan", "unihan"),
            ("zhuyin", "zhuyin"),
        ],
    ),
    (
        "zh_Hant",
        &[
            ("big5han", "big5han"),
            ("gb2312han", "gb2312"),
            ("pinyin", "pinyin"),
            ("standard", "standard"),
            ("unihan", "unihan"),
            ("zhuyin", "zhuyin"),
        ],
    ),
];

/// Languages that order as the root does, for which a backwards second level can be had.
const ROOT_ORDER: &[&str] = &["en", "fr", "de", "it", "pt", "nl", "ga", "id", "ms", "sw", "zu", "lb"];

/// A non-simple collation: how strings compare and which bytes stand for them in index keys.
pub struct Collation {
    spec: DocBuf,
    collator: CollatorBorrowed<'static>,
    /// Strings equal at the strength still differ (strength 5).
    identical: bool,
}

impl Collation {
    /// The document with its defaults written out: how definitions keep it, and how their errors show it.
    pub fn written_out(spec: &RawDoc) -> Result<DocBuf> {
        Ok(Fields::parse(spec, "collation")?.written_out())
    }
    /// Parses a `collation` document; `{locale: "simple"}` gives `None`.
    pub fn parse(spec: &RawDoc) -> Result<Option<Arc<Collation>>> {
        let fields = Fields::parse(spec, "collation")?;
        if fields.locale == "simple" {
            return Ok(None);
        }
        let tag = fields.checked_tag(spec)?;
        if fields.case_first != "off" && fields.strength < 3 && !fields.case_level {
            let text = "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2 in: ";
            return Err(Error::bad_value(format!("{text}{spec}")));
        }
        if fields.backwards == Some(true) && fields.strength == 1 {
            return Err(Error::bad_value(format!("'backwards' is invalid with 'strength' of 1 in: {spec}")));
        }
        fields.build(&tag).map(Some)
    }
    /// A collation that was stored once. Those of earlier releases may name locales that would be refused now.
    pub fn stored(spec: &RawDoc) -> Result<Option<Arc<Collation>>> {
        let fields = Fields::parse(spec, "collation")?;
        if fields.locale == "simple" {
            return Ok(None);
        }
        let (name, variant) = split_variant(fields.locale);
        let plain = || name.replace("_POSIX", "-u-va-posix").replace('_', "-");
        let near = || nearest(name, variant);
        let tag = fields.checked_tag(spec).or_else(|e| match Locale::try_from_str(&plain()) {
            Ok(_) => Ok(plain()),
            Err(_) => near().map(|n| n.replace('_', "-")).ok_or(e),
        })?;
        fields.build(&tag).map(Some)
    }
    /// Looks at the fields alone, in the words of the command whose field `owner` it is.
    pub fn check_form(spec: &RawDoc, owner: &str) -> Result<()> {
        Fields::parse(spec, owner).map(drop)
    }
    /// Every field, as `listCollections` and `listIndexes` show it.
    pub fn spec(&self) -> &RawDoc {
        &self.spec
    }
    /// Strings are equal and ordered alike in both; `None` compares bytes.
    pub(crate) fn same(a: &Option<Arc<Collation>>, b: &Option<Arc<Collation>>) -> bool {
        match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => a.spec() == b.spec(),
            _ => false,
        }
    }
    /// A collation (or none) as the order that value comparison takes.
    pub fn order(collation: &Option<Arc<Collation>>) -> Option<&dyn StringOrder> {
        collation.as_deref().map(|c| c as &dyn StringOrder)
    }
}

impl PartialEq for Collation {
    fn eq(&self, other: &Collation) -> bool {
        self.spec == other.spec
    }
}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collation({})", &*self.spec)
    }
}

/// Bytes compared or mapped in one step.
const BYTES_PER_STEP: usize = 16;

impl StringOrder for Collation {
    fn cmp(&self, a: &str, b: &str) -> Ordering {
        // Asked for others' sake; the caller gives up, if it must.
        patience::is_over(1 + a.len().min(b.len()) / BYTES_PER_STEP);
        let order = self.collator.compare(a, b);
        if self.identical { order.then_with(|| a.cmp(b)) } else { order }
    }
    fn sort_key(&self, s: &str, out: &mut Vec<u8>) {
        patience::is_over(1 + s.len() / BYTES_PER_STEP);
        // Writing into a Vec cannot fail.
        let _ = self.collator.write_sort_key_to(s, out);
        if self.identical {
            out.push(0);
            out.extend_from_slice(s.as_bytes());
        }
    }
}

/// The fields of a collation document with defaults filled in.
struct Fields<'a> {
    locale: &'a str,
    case_level: bool,
    case_first: &'a str,
    strength: i64,
    numeric: bool,
    alternate: &'a str,
    max_variable: &'a str,
    normalization: bool,
    backwards: Option<bool>,
    version: Option<&'a str>,
}

impl<'a> Fields<'a> {
    fn parse(spec: &'a RawDoc, owner: &str) -> Result<Fields<'a>> {
        let mut f = Fields {
            locale: "",
            case_level: false,
            case_first: "off",
            strength: 3,
            numeric: false,
            alternate: "non-ignorable",
            max_variable: "punct",
            normalization: false,
            backwards: None,
            version: None,
        };
        let mut has_locale = false;
        for e in spec {
            let v = e.value();
            match e.name() {
                "locale" | "caseLevel" | "caseFirst" | "strength" | "numericOrdering" | "alternate"
                | "maxVariable" | "normalization" | "version"
                    if matches!(v, Value::Null | Value::Undefined) => {}
                "locale" => {
                    f.locale = string(owner, "locale", v)?;
                    has_locale = true;
                }
                "caseLevel" => f.case_level = boolean(owner, "caseLevel", v)?,
                "caseFirst" => f.case_first = one_of(owner, "caseFirst", v, &["upper", "lower", "off"])?,
                "strength" => f.strength = strength(owner, v)?,
                "numericOrdering" => f.numeric = boolean(owner, "numericOrdering", v)?,
                "alternate" => f.alternate = one_of(owner, "alternate", v, &["non-ignorable", "shifted"])?,
                "maxVariable" => f.max_variable = one_of(owner, "maxVariable", v, &["punct", "space"])?,
                "normalization" => f.normalization = boolean(owner, "normalization", v)?,
                "backwards" => {
                    f.backwards = Some(v.as_bool().ok_or_else(|| {
                        let found = v.type_name();
                        Error::type_mismatch(format!(
                            "Field 'backwards' should be a boolean value, but found: {found}"
                        ))
                    })?);
                }
                "version" => f.version = Some(string(owner, "version", v)?),
                other => {
                    let text = format!("BSON field '{owner}.{other}' is an unknown field.");
                    return Err(Error::location(40415, text));
                }
            }
        }
        if !has_locale {
            let text = format!("BSON field '{owner}.locale' is missing but a required field");
            return Err(Error::location(40414, text));
        }
        Ok(f)
    }

    fn expanded(&self) -> DocBuf {
        let mut b = self.common();
        b.bool("backwards", self.backwards.unwrap_or(self.locale == "fr_CA"));
        b.str("version", VERSION);
        b.finish()
    }
    fn written_out(&self) -> DocBuf {
        let mut b = self.common();
        if let Some(backwards) = self.backwards {
            b.bool("backwards", backwards);
        }
        if let Some(version) = self.version {
            b.str("version", version);
        }
        b.finish()
    }
    fn common(&self) -> DocBuilder {
        let mut b = DocBuilder::new();
        b.str("locale", self.locale)
            .bool("caseLevel", self.case_level)
            .str("caseFirst", self.case_first)
            .i32("strength", self.strength as i32)
            .bool("numericOrdering", self.numeric)
            .str("alternate", self.alternate)
            .str("maxVariable", self.max_variable)
            .bool("normalization", self.normalization);
        b
    }

    /// `de-u-co-phonebk` of `de@collation=phonebook`.
    fn checked_tag(&self, spec: &RawDoc) -> Result<String> {
        if self.locale.is_empty() {
            return Err(Error::bad_value(format!("Field 'locale' cannot be the empty string in: {spec}")));
        }
        if let Some(version) = self.version.filter(|v| *v != VERSION) {
            let text = format!(
                "Requested collation version {version} but the only available collator version was {VERSION}. \
                 Requested collation spec: {spec}"
            );
            return Err(Error::new(ErrorCode::IncompatibleCollationVersion, text));
        }
        let (name, variant) = split_variant(self.locale);
        if LOCALES.contains(&name) {
            let tag = name.replace("_POSIX", "-u-va-posix").replace('_', "-");
            match variant.map(|v| code_of(name, v)) {
                None => return Ok(tag),
                Some(Some(code)) => match tag.split_once("-u-") {
                    Some((tag, rest)) => return Ok(format!("{tag}-u-co-{code}-{rest}")),
                    None => return Ok(format!("{tag}-u-co-{code}")),
                },
                Some(None) => {}
            }
        }
        let hint = nearest(name, variant).map(|near| format!(". Did you mean '{near}'?"));
        let hint = hint.unwrap_or_default();
        Err(Error::bad_value(format!("Field 'locale' is invalid in: {spec}{hint}")))
    }

    fn build(&self, tag: &str) -> Result<Arc<Collation>> {
        let spec = self.expanded();
        let locale = self.locale_of(tag, spec.get("backwards").is_some_and(|v| v.is_truthy()))?;
        let collator = CollatorBorrowed::try_new(self.preferences(&locale), self.options())
            .map_err(|_| Error::bad_value(format!("the order '{}' is not built in", self.locale)))?;
        Ok(Arc::new(Collation { spec, collator, identical: self.strength == 5 }))
    }

    /// Only the rules of `fr_CA` have a backwards second level here: it stands in for locales without rules of their own.
    fn locale_of(&self, tag: &str, backwards: bool) -> Result<Locale> {
        let (name, _) = split_variant(self.locale);
        let mut tag = tag;
        if backwards && name != "fr_CA" {
            let language = name.split('_').next().unwrap_or_default();
            if !ROOT_ORDER.contains(&language) {
                return Err(Error::bad_value(format!("'backwards' is not supported for locale '{name}'")));
            }
            tag = "fr-CA";
        }
        Locale::try_from_str(tag).map_err(|e| Error::internal(format!("locale {tag}: {e}")))
    }

    fn preferences(&self, locale: &Locale) -> CollatorPreferences {
        let mut prefs = CollatorPreferences::from(locale);
        prefs.case_first = Some(match self.case_first {
            "upper" => CollationCaseFirst::Upper,
            "lower" => CollationCaseFirst::Lower,
            _ => CollationCaseFirst::False,
        });
        prefs.numeric_ordering =
            Some(if self.numeric { CollationNumericOrdering::True } else { CollationNumericOrdering::False });
        prefs
    }

    fn options(&self) -> CollatorOptions {
        let mut o = CollatorOptions::default();
        o.strength = Some(match self.strength {
            1 => Strength::Primary,
            2 => Strength::Secondary,
            3 => Strength::Tertiary,
            4 => Strength::Quaternary,
            _ => Strength::Identical,
        });
        o.case_level = Some(if self.case_level { CaseLevel::On } else { CaseLevel::Off });
        o.alternate_handling = Some(match self.alternate {
            "shifted" => AlternateHandling::Shifted,
            _ => AlternateHandling::NonIgnorable,
        });
        o.max_variable = Some(match self.max_variable {
            "space" => MaxVariable::Space,
            _ => MaxVariable::Punctuation,
        });
        o
    }
}

fn split_variant(locale: &str) -> (&str, Option<&str>) {
    match locale.split_once("@collation=") {
        Some((name, variant)) => (name, Some(variant)),
        None => (locale, None),
    }
}

/// How Unicode's tags spell a variant that the locale has.
fn code_of(name: &str, variant: &str) -> Option<&'static str> {
    let own = VARIANTS_OF.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, own)| own);
    VARIANTS.iter().chain(own).find(|(known, _)| *known == variant).map(|(_, code)| *code)
}

/// The locale that a client who wrote this one may have meant: the same in the usual spelling, or one that it belongs to.
fn nearest(name: &str, variant: Option<&str>) -> Option<String> {
    let usual = |(i, part): (usize, &str)| match (i, part.len()) {
        (0, _) => part.to_ascii_lowercase(),
        (_, 4) => format!("{}{}", part[..1].to_ascii_uppercase(), part[1..].to_ascii_lowercase()),
        _ => part.to_ascii_uppercase(),
    };
    if !name.is_ascii() {
        return None;
    }
    let parts: Vec<String> = name.split(['_', '-']).enumerate().map(usual).collect();
    let near =
        (1..=parts.len()).rev().map(|n| parts[..n].join("_")).find(|n| LOCALES.contains(&n.as_str()))?;
    Some(match variant {
        Some("searchjl") => format!("{near}@collation=search"),
        Some(v) if code_of(&near, v).is_some() => format!("{near}@collation={v}"),
        _ => near,
    })
}

fn wrong_type(owner: &str, field: &str, v: Value<'_>, expected: &str) -> Error {
    let text =
        format!("BSON field '{owner}.{field}' is the wrong type '{}', expected {expected}", v.type_name());
    Error::type_mismatch(text)
}

fn string<'a>(owner: &str, field: &str, v: Value<'a>) -> Result<&'a str> {
    v.as_str().ok_or_else(|| wrong_type(owner, field, v, "type 'string'"))
}

fn boolean(owner: &str, field: &str, v: Value<'_>) -> Result<bool> {
    v.as_bool().ok_or_else(|| wrong_type(owner, field, v, "type 'bool'"))
}

fn one_of<'a>(owner: &str, field: &str, v: Value<'a>, allowed: &[&str]) -> Result<&'a str> {
    let s = string(owner, field, v)?;
    if allowed.contains(&s) {
        return Ok(s);
    }
    let text = format!("Enumeration value '{s}' for field '{owner}.{field}' is not a valid value.");
    Err(Error::bad_value(text))
}

fn strength(owner: &str, v: Value<'_>) -> Result<i64> {
    let Some(n) = safe_i64(&v).map(|n| n.clamp(i64::from(i32::MIN), i64::from(i32::MAX))) else {
        return Err(wrong_type(owner, "strength", v, "types '[long, int, decimal, double']"));
    };
    match n {
        1..=5 => Ok(n),
        0 => Err(Error::bad_value(
            "Enumeration value '0' for field 'collation.strength' is not a valid value.",
        )),
        6.. => Err(Error::location(
            51024,
            format!("BSON field 'strength' value must be <= 5, actual value '{n}'"),
        )),
        _ => Err(Error::location(
            51024,
            format!("BSON field 'strength' value must be >= 0, actual value '{n}'"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    fn collation(spec: pando_bson::Document) -> Arc<Collation> {
        Collation::parse(&spec.to_raw()).unwrap().unwrap()
    }

    #[test]
    fn strength_two_ignores_case_and_strength_one_accents_too() {
        let c = collation(doc! { "locale": "en", "strength": 2 });
        assert_eq!(StringOrder::cmp(&*c, "Abc", "abC"), Ordering::Equal);
        assert_ne!(StringOrder::cmp(&*c, "e", "é"), Ordering::Equal);
        let c = collation(doc! { "locale": "en", "strength": 1 });
        assert_eq!(StringOrder::cmp(&*c, "e", "É"), Ordering::Equal);
    }

    #[test]
    fn sort_keys_order_as_the_strings_do() {
        let words = ["a", "B", "b", "ä", "z", "Z", "ö", "10", "9", "é", "e", "", "a b", "ab", "côte", "coté"];
        for spec in [
            doc! { "locale": "sv" },
            doc! { "locale": "en", "numericOrdering": true },
            doc! { "locale": "de", "caseFirst": "upper" },
            doc! { "locale": "fr_CA" },
            doc! { "locale": "en", "alternate": "shifted", "strength": 4 },
            doc! { "locale": "en", "strength": 5 },
        ] {
            let c = collation(spec);
            for a in words {
                for b in words {
                    let (mut ka, mut kb) = (Vec::new(), Vec::new());
                    c.sort_key(a, &mut ka);
                    c.sort_key(b, &mut kb);
                    assert_eq!(ka.cmp(&kb), StringOrder::cmp(&*c, a, b), "{a} {b} {c:?}");
                }
            }
        }
    }

    #[test]
    fn locales_have_their_own_order() {
        assert_eq!(StringOrder::cmp(&*collation(doc! { "locale": "sv" }), "z", "ö"), Ordering::Less);
        assert_eq!(StringOrder::cmp(&*collation(doc! { "locale": "de" }), "z", "ö"), Ordering::Greater);
        let c = collation(doc! { "locale": "en", "numericOrdering": true });
        assert_eq!(StringOrder::cmp(&*c, "9", "10"), Ordering::Less);
    }

    #[test]
    fn backwards_turns_the_accents_round() {
        let plain = collation(doc! { "locale": "fr" });
        let canada = collation(doc! { "locale": "fr_CA" });
        let asked = collation(doc! { "locale": "en", "backwards": true });
        assert_eq!(StringOrder::cmp(&*plain, "coté", "côte"), Ordering::Less);
        assert_eq!(StringOrder::cmp(&*canada, "coté", "côte"), Ordering::Greater);
        assert_eq!(StringOrder::cmp(&*asked, "coté", "côte"), Ordering::Greater);
    }

    #[test]
    fn simple_is_none_and_refusals_carry_mongodbs_codes() {
        assert!(Collation::parse(&doc! { "locale": "simple" }.to_raw()).unwrap().is_none());
        let code = |d: pando_bson::Document| Collation::parse(&d.to_raw()).unwrap_err().code.0;
        assert_eq!(code(doc! {}), 40414);
        assert_eq!(code(doc! { "locale": "xx" }), 2);
        for (locale, hint) in [
            ("en-US", ". Did you mean 'en_US'?"),
            ("EN", ". Did you mean 'en'?"),
            ("de_DE", ". Did you mean 'de'?"),
            ("zh@collation=pinyin", ". Did you mean 'zh'?"),
            ("af@collation=searchjl", ". Did you mean 'af@collation=search'?"),
            ("no", ""),
        ] {
            let e = Collation::parse(&doc! { "locale": locale }.to_raw()).unwrap_err();
            assert_eq!(e.message, format!("Field 'locale' is invalid in: {{ locale: \"{locale}\" }}{hint}"));
        }
        assert_eq!(code(doc! { "locale": "en", "strength": 1, "backwards": true }), 2);
        assert_eq!(code(doc! { "locale": 5 }), 14);
        assert_eq!(code(doc! { "locale": "en", "strength": 6 }), 51024);
        assert_eq!(code(doc! { "locale": "en", "foo": 1 }), 40415);
        assert_eq!(code(doc! { "locale": "en", "caseFirst": "lower", "strength": 2 }), 2);
        assert_eq!(code(doc! { "locale": "en", "version": "1" }), 161);
    }

    #[test]
    fn every_locale_has_an_order_and_so_have_its_variants_but_two() {
        let mut missing = std::collections::BTreeSet::new();
        for locale in LOCALES {
            let own = VARIANTS_OF.iter().find(|(of, _)| of == locale).map_or(&[][..], |(_, own)| own);
            collation(doc! { "locale": *locale });
            for (variant, _) in VARIANTS.iter().chain(own) {
                let spec = doc! { "locale": format!("{locale}@collation={variant}") };
                if Collation::parse(&spec.to_raw()).is_err() {
                    missing.insert(format!("{locale}@{variant}"));
                }
            }
        }
        assert_eq!(missing.into_iter().collect::<Vec<_>>(), ["ee@search", "vi@search"]);
    }

    #[test]
    fn what_was_stored_before_locales_were_a_list_opens() {
        for locale in ["de_DE", "en_XX", "zh@collation=pinyin"] {
            let spec = doc! { "locale": locale }.to_raw();
            assert!(Collation::parse(&spec).is_err());
            assert!(Collation::stored(&spec).unwrap().is_some(), "{locale}");
        }
    }

    #[test]
    fn the_stored_form_names_every_field() {
        let c = collation(doc! { "locale": "fr_CA" });
        assert_eq!(c.spec().get("backwards").and_then(|v| v.as_bool()), Some(true));
        assert_eq!(c.spec().count(), 10);
    }
}
