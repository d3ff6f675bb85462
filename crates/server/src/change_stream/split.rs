//! An event that is larger than a document may be, in fragments: each has the event's token with its own number behind it, and
//! as many whole fields as fit, the small ones first.

use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc};
use pando_query::change_stream::Token;

/// The fragments of `event`, none of them larger than `max` bytes.
pub(super) fn split(event: &RawDoc, token: &Token, max: usize) -> Result<Vec<(Token, DocBuf)>> {
    let mut fields: Vec<Elem<'_>> = event.iter().filter(|e| e.name() != "_id").collect();
    fields.sort_by_key(size_of);
    // Numbers take as many bytes whatever they are, but for those in the token.
    let frame = |n: usize| head(&token.fragment(n), 0, 0).finish().byte_len();
    let mut parts: Vec<&[Elem<'_>]> = Vec::new();
    let mut rest = &fields[..];
    while !rest.is_empty() {
        let mut size = frame(parts.len());
        let fits = rest.iter().take_while(|e| {
            size += size_of(e);
            size <= max
        });
        let n = fits.count();
        if n == 0 {
            return Err(Error::location(
                7_182_500,
                format!(
                    "Splitting change event failed: fragment size {size} is greater than maximum allowed fragment \
                     size {max}"
                ),
            ));
        }
        let (part, others) = rest.split_at(n);
        parts.push(part);
        rest = others;
    }
    let of = parts.len();
    let fragments = parts.into_iter().enumerate().map(|(n, fields)| {
        let token = token.fragment(n);
        let mut b = head(&token, n + 1, of);
        for e in fields {
            b.elem(*e);
        }
        (token, b.finish())
    });
    Ok(fragments.collect())
}

/// Type, name with its end, value.
fn size_of(e: &Elem<'_>) -> usize {
    2 + e.name_bytes().len() + e.data().len()
}

fn head(token: &Token, n: usize, of: usize) -> DocBuilder {
    let mut b = DocBuilder::new();
    b.raw_doc("_id", token.doc());
    b.doc("splitEvent", |s| {
        s.i32("fragment", n as i32).i32("of", of as i32);
    });
    b
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::Timestamp;
    use pando_bson::doc;
    use pando_query::change_stream::Place;

    fn token() -> Token {
        let place =
            Place { time: Timestamp::new(5, 5), index: 0, invalidates: false, uuid: None, about: None };
        Token::of_event(&place)
    }
    fn names(event: &RawDoc, max: usize) -> Vec<Vec<String>> {
        let parts = split(event, &token(), max).unwrap();
        parts.iter().map(|(_, d)| d.iter().skip(2).map(|e| e.name().to_owned()).collect()).collect()
    }

    #[test]
    fn small_fields_come_first_and_none_is_cut() {
        let event = doc! { "_id": 1, "big": "x".repeat(300), "a": 1, "bigger": "x".repeat(400), "b": 2.5 };
        let event = event.to_raw();
        assert_eq!(names(&event, 900), [vec!["a", "b", "big", "bigger"]]);
        assert_eq!(names(&event, 600), [vec!["a", "b", "big"], vec!["bigger"]]);
        let parts = split(&event, &token(), 600).unwrap();
        for (n, (token, part)) in parts.iter().enumerate() {
            assert!(part.byte_len() <= 600);
            assert_eq!(part.get_path("splitEvent.fragment").and_then(|v| v.as_i64()), Some(n as i64 + 1));
            assert_eq!(part.get_path("splitEvent.of").and_then(|v| v.as_i64()), Some(2));
            assert_eq!(token.doc().as_bytes(), part.get("_id").and_then(|v| v.as_doc()).unwrap().as_bytes());
        }
        assert_eq!(split(&event, &token(), 300).unwrap_err().code.0, 7_182_500);
    }
    #[test]
    fn a_fragment_knows_its_event_and_sorts_behind_it() {
        let event = token();
        let parts: Vec<Token> = (0..300).map(|n| event.fragment(n)).collect();
        for (n, part) in parts.iter().enumerate() {
            let told = Token::parse(part.doc()).unwrap();
            assert_eq!((told.fragment_of(&event), told.is_after(&event)), (Some(n), true));
        }
        assert!(parts.windows(2).all(|two| two[1].is_after(&two[0])));
        assert_eq!(event.fragment_of(&event), None);
        assert_eq!(parts[1].fragment_of(&Token::high_water(Timestamp::new(5, 5))), None);
    }
}
