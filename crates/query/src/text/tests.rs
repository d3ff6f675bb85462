//! Scores and terms were read off a real server.

use super::{Language, Sensitivity, TextQuery, TextSpec};
use pando_bson::{Document, doc};

fn spec(weights: Document) -> TextSpec {
    spec_of(3, weights, "english")
}

fn spec_of(version: i32, weights: Document, language: &str) -> TextSpec {
    let d = doc! {
        "key": { "p": 1, "_fts": "text", "_ftsx": 1, "s": -1 }, "weights": weights,
        "default_language": language, "language_override": "language", "textIndexVersion": version,
    };
    TextSpec::from_index(&d.to_raw()).unwrap()
}

fn scores(spec: &TextSpec, d: Document) -> Vec<(String, f64)> {
    spec.scores(&d.to_raw()).unwrap().into_iter().collect()
}

fn query(search: &str, language: &str) -> TextQuery {
    TextQuery::parse(search, Language::of_name(language).unwrap(), Sensitivity::default())
}

fn words<'a>(list: impl IntoIterator<Item = &'a String>) -> String {
    list.into_iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_score_is_weight_times_frequency_times_share() {
    let s = spec(doc! { "a": 1 });
    let one = |text: &str| scores(&s, doc! { "a": text }).into_iter().find(|(t, _)| t == "fox").unwrap().1;
    assert_eq!(one("fox"), 1.1);
    assert_eq!(one("fox fox dog"), 1.25);
    assert_eq!(one("the quick brown fox jumps"), 0.625);
    assert_eq!(one("foxes"), 1.0);
}

#[test]
fn fields_count_by_their_paths_and_weights() {
    let s = spec(doc! { "a": 1, "b.c": 10 });
    let d = doc! { "a": ["cat", { "b": "dog" }, ["cow"]], "b": [{ "c": "pig" }, { "d": "hen" }], "z": "ant" };
    assert_eq!(scores(&s, d), [("cat".to_owned(), 1.1), ("pig".to_owned(), 11.0)]);
    let all = spec(doc! { "$**": 1 });
    let d = doc! { "language": "english", "x": { "y": [["cow"]] } };
    assert_eq!(scores(&all, d), [("cow".to_owned(), 1.1)]);
}

#[test]
fn a_document_names_its_language() {
    let s = spec(doc! { "a": 1, "b.a": 1 });
    let d = doc! { "a": "los perros", "language": "spanish", "b": { "a": "the dogs", "language": "none" } };
    let terms = scores(&s, d).into_iter().map(|(t, _)| t).collect::<Vec<_>>().join(" ");
    assert_eq!(terms, "dogs perr the");
    let bad = |d: Document| s.scores(&d.to_raw()).unwrap_err().code.0;
    assert_eq!(bad(doc! { "a": "x", "language": 5 }), 17261);
    assert_eq!(bad(doc! { "a": "x", "language": "klingon" }), 17262);
}

#[test]
fn each_phrase_may_stand_in_another_field_and_an_unwanted_one_in_none() {
    let spec = spec(doc! { "a": 1, "b": 1 });
    let accepts = |search: &str| {
        let doc = doc! { "a": "The Quick fox", "b": "lazy dog barks" }.to_raw();
        let q = TextQuery::parse(search, Language::English, Sensitivity::default());
        q.accepts(&doc, &spec).expect("strings")
    };
    assert!(accepts(r#""quick FOX" "lazy dog" fox"#));
    assert!(!accepts(r#""quick FOX" "lazy cat""#));
    assert!(!accepts(r#"fox "quick fox" -"dog barks""#));
    assert!(!accepts(r#""fox lazy""#), "not across fields");
}

#[test]
fn words_negations_and_phrases_are_told_apart() {
    let q = query("Running \"Dogs RUN\" -Cats -\"Big Cat\"", "english");
    assert_eq!(words(&q.terms), "dog run");
    assert_eq!(words(&q.negated_terms), "cat");
    assert_eq!((words(&q.phrases), words(&q.negated_phrases)), ("Dogs RUN".into(), "Big Cat".into()));
}

#[test]
fn a_minus_negates_behind_a_space_and_up_to_the_next() {
    for (search, terms, negated) in [
        ("a-b", "a b", ""),
        ("foo -bar-baz qux", "foo qux", "bar baz"),
        ("- foo", "foo", ""),
        ("--foo", "", "foo"),
        ("x\t-b", "b x", ""),
        ("x\n-b", "x", "b"),
        ("-a\tb", "", "a b"),
        ("-\"a b", "", ""),
        ("x \"a\" \"b", "a b x", ""),
    ] {
        let q = query(search, "none");
        let sorted = |s: &str| {
            let mut v: Vec<String> = s.split_whitespace().map(str::to_owned).collect();
            v.sort();
            v
        };
        assert_eq!(q.terms.iter().cloned().collect::<Vec<_>>(), sorted(terms), "{search}");
        assert_eq!(q.negated_terms.iter().cloned().collect::<Vec<_>>(), sorted(negated), "{search}");
    }
}

#[test]
fn languages_differ_in_letters_apostrophes_and_stems() {
    assert_eq!(words(&query("don't o'clock John's", "english").terms), "john o'clock");
    assert_eq!(words(&query("l'homme d'été", "french").terms), "homm");
    assert_eq!(words(&query("IŞIK ISPARTA", "turkish").terms), "ıspar ısık");
    assert_eq!(words(&query("STRASSE Ünï éa", "german").terms), "ea strass uni");
}

#[test]
fn only_a_document_with_everything_matches() {
    let s = spec(doc! { "a": 1 });
    let holds = |search: &str, text: &str| {
        query(search, "english").matches(&doc! { "a": text }.to_raw(), &s).unwrap()
    };
    assert!(holds("fox hen", "Quick foxes"));
    assert!(!holds("fox -quick", "Quick foxes"));
    assert!(holds("\"QUICK f\"", "A quick fox"));
    assert!(!holds("fox \"slow\"", "A quick fox"));
    assert!(!holds("-fox", "A quick hen"));
}

#[test]
fn letters_that_count_are_looked_at_in_the_document() {
    let s = spec(doc! { "a": 1 });
    let exact = Sensitivity { case: true, diacritics: true, ..Sensitivity::default() };
    let q = TextQuery::parse("Café", Language::None, exact);
    let holds = |text: &str| q.matches(&doc! { "a": text, "language": "none" }.to_raw(), &s).unwrap();
    assert!(holds("un Café"));
    assert!(!holds("un café") && !holds("un Cafe"));
}

#[test]
fn indexes_before_version_3_know_the_letters_of_ascii() {
    for version in [1, 2] {
        let s = spec_of(version, doc! { "a": 1 }, "english");
        let d = doc! { "a": "CAFÉ Café\u{2014}dash" };
        let terms: Vec<String> = scores(&s, d).into_iter().map(|(t, _)| t).collect();
        assert_eq!(terms, ["cafÉ", "café\u{2014}dash"]);
        let q = TextQuery::parse("Café", Language::English, s.letters());
        assert_eq!(words(&q.lookups), "café");
        assert!(q.matches(&doc! { "a": "CAFé" }.to_raw(), &s).unwrap());
        assert!(!q.matches(&doc! { "a": "cafe" }.to_raw(), &s).unwrap());
    }
}

#[test]
fn the_first_version_takes_any_language_and_looks_at_paths_plainly() {
    let s = spec_of(1, doc! { "a.b": 3, "c": 1 }, "klingon");
    assert_eq!(s.default_language(), Language::None);
    let d = doc! { "a": [{ "b": "fox" }], "c": ["the"], "language": 5 };
    assert_eq!(scores(&s, d), [("the".to_owned(), 1.1)]);
    let d = doc! { "a": { "b": "running", "language": "english" }, "language": "eng" };
    assert_eq!(scores(&s, d), [("run".to_owned(), 3.0)]);
    let all = spec_of(1, doc! { "$**": 1, "a.b": 3 }, "");
    assert_eq!(scores(&all, doc! { "a": { "b": "foxes" } }), [("fox".to_owned(), 1.0)]);
}
