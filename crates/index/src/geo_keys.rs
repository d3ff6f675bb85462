//! The keys of indexes on places: cells of the sphere (`2dsphere`), or of a square of the plane (`2d`).
//!
//! A field beside the place is stored as it is; arrays there give a key each in a `2dsphere` index and are one value
//! in a `2d` index. A document without a place has no keys (but for `2dsphere` indexes of version 1).

use crate::key_set::KeySet;
use crate::keys::KeyGen;
use pando_base::{Error, Result, patience};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuf, DocBuilder, Elem, ElementType, RawDoc, Value};
use pando_query::geo::{Crs, GeoIndex, Grid, Shape, Xy, each_below, each_place, parse};
use pando_query::source::FieldKind;
use pando_query::timeseries::uncompressed;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// One field's part of a key.
#[derive(Clone, Copy)]
enum Part<'d> {
    Cell(i64),
    Value(Value<'d>),
}

impl KeyGen {
    /// The keys of a document in an index on places.
    pub(crate) fn geo_keys(&self, doc: &RawDoc, b: &mut KeyBuilder, out: &mut KeySet) -> Result<()> {
        match self.geo.as_deref() {
            Some(GeoIndex::Plane(grid)) => self.plane_keys(grid, doc, b, out),
            Some(sphere) => self.sphere_keys(sphere, doc, b, out),
            None => Err(Error::internal("an index on places without its parameters")),
        }
    }

    fn sphere_keys(
        &self,
        index: &GeoIndex,
        doc: &RawDoc,
        b: &mut KeyBuilder,
        out: &mut KeySet,
    ) -> Result<()> {
        let (mut fields, mut placed) = (Vec::new(), false);
        for (i, f) in self.fields.iter().enumerate() {
            let parts: Vec<&str> = f.parts.iter().map(|p| &**p).collect();
            if f.kind != FieldKind::Geo {
                fields.push(self.plain_parts(doc, &parts, i, out));
                continue;
            }
            let mut cells = BTreeSet::new();
            let plain = match (f.rows, parts.get(1)) {
                (true, Some(column)) => uncompressed(doc, &|name| name == column.as_bytes())?,
                _ => Cow::Borrowed(doc),
            };
            let found = if f.rows { rows(&plain, &parts) } else { places(doc, &parts) };
            for e in found {
                if self.geo_version > 1 && is_nothing(e) {
                    continue;
                }
                placed = true;
                let shape = self.shape_of(e);
                patience::check()?;
                let shape = shape.map_err(|why| match f.rows {
                    true => Error::location(183_934, format!("Can't extract geo keys: {}", why.message)),
                    false => {
                        Error::location(16755, format!("Can't extract geo keys: {doc}  {}", why.message))
                    }
                })?;
                cells.extend(index.keys(shape));
                patience::check()?;
            }
            fields.push(match cells.is_empty() {
                true => vec![Part::Value(Value::Null)],
                false => cells.into_iter().map(Part::Cell).collect(),
            });
        }
        if !placed && self.geo_version > 1 {
            return Ok(());
        }
        let mut row = Vec::new();
        self.product(&fields, &mut row, b, out);
        out.sort();
        Ok(())
    }

    fn shape_of(&self, e: Elem<'_>) -> Result<Shape> {
        let shape = parse::geometry(e)?;
        if shape.crs() == Crs::Strict {
            return Err(Error::bad_value("can't index geometry with strict winding order"));
        }
        if !shape.fits_sphere() {
            return Err(Error::bad_value(format!(
                "can't project geometry into spherical CRS: {}",
                e.value()
            )));
        }
        let old = matches!(shape, Shape::Point(_) | Shape::Line(_) | Shape::Polygon(_));
        if self.geo_version == 1 && !old {
            return Err(Error::bad_value("given geometry can't be indexed in the old index format"));
        }
        Ok(shape)
    }

    /// All combinations of the fields' parts.
    fn product(&self, left: &[Vec<Part<'_>>], row: &mut Vec<usize>, b: &mut KeyBuilder, out: &mut KeySet) {
        if row.len() < left.len() {
            for i in 0..left[row.len()].len() {
                row.push(i);
                self.product(left, row, b, out);
                row.pop();
            }
            return;
        }
        b.restart(self.directions());
        for (choices, i) in left.iter().zip(row.iter()) {
            match choices[*i] {
                Part::Cell(cell) => b.append(Value::Int64(cell)),
                Part::Value(v) => b.append_with(v, self.order()),
            };
        }
        out.push(b);
    }

    /// The values of a field that is not a place, elements of arrays one by one.
    fn plain_parts<'d>(
        &self,
        doc: &'d RawDoc,
        parts: &[&str],
        field: usize,
        out: &mut KeySet,
    ) -> Vec<Part<'d>> {
        let found = places(doc, parts);
        if found.len() > 1 {
            (0..parts.len()).for_each(|c| out.mark(self.fields.len(), field, c));
        }
        let mut values = Vec::new();
        for e in found {
            match e.value() {
                Value::Array(items) => {
                    (0..parts.len()).for_each(|c| out.mark(self.fields.len(), field, c));
                    values.extend(items.iter().map(|x| Part::Value(x.value())));
                    if items.is_empty() {
                        values.push(Part::Value(Value::Undefined));
                    }
                }
                v => values.push(Part::Value(v)),
            }
        }
        if values.is_empty() {
            values.push(Part::Value(Value::Null));
        }
        values
    }

    fn plane_keys(&self, grid: &Grid, doc: &RawDoc, b: &mut KeyBuilder, out: &mut KeySet) -> Result<()> {
        let paths: Vec<Vec<&str>> =
            self.fields.iter().map(|f| f.parts.iter().map(|p| &**p).collect()).collect();
        let Some((place, others)) = paths.split_first() else { return Ok(()) };
        let extra: Vec<DocBuf> = others.iter().map(|parts| one_value(&places(doc, parts))).collect();
        for e in places(doc, place) {
            let (Value::Document(obj) | Value::Array(obj)) = e.value() else { continue };
            let Some(first) = obj.first() else { continue };
            let mut points = Vec::new();
            if first.value().is_number() {
                points.extend(point(grid, obj, doc)?);
            } else {
                for x in obj {
                    let (Value::Document(inner) | Value::Array(inner)) = x.value() else {
                        let text = "location object expected, location array not in correct format";
                        return Err(Error::location(16804, text));
                    };
                    points.extend(point(grid, inner, doc)?);
                }
            }
            for key in points {
                b.restart(self.directions());
                b.append(Value::Int64(key));
                for value in &extra {
                    b.append_with(value.first().map_or(Value::Null, |e| e.value()), self.order());
                }
                out.push(b);
            }
        }
        out.sort();
        Ok(())
    }
}

fn places<'d>(doc: &'d RawDoc, parts: &[&str]) -> Vec<Elem<'d>> {
    let mut found = Vec::new();
    each_place(doc, parts, &mut |e| found.push(e));
    found
}

/// What the rows of a bucket's column (`data.place`) have under the rest of the path.
fn rows<'d>(bucket: &'d RawDoc, parts: &[&str]) -> Vec<Elem<'d>> {
    let (column, rest) = parts.split_at(parts.len().min(2));
    let mut found = Vec::new();
    for e in places(bucket, column) {
        for row in e.value().as_doc().into_iter().flatten() {
            each_below(row, rest, &mut |e| found.push(e));
        }
    }
    found
}

fn is_nothing(e: Elem<'_>) -> bool {
    match e.value() {
        Value::Document(d) | Value::Array(d) => d.is_empty(),
        _ => matches!(e.ty, ElementType::Null | ElementType::Undefined),
    }
}

/// Several values are stored as an array of them.
fn one_value(found: &[Elem<'_>]) -> DocBuf {
    let mut b = DocBuilder::new();
    match found {
        [] => {}
        [one] => {
            b.elem(*one);
        }
        many => {
            b.array("", |a| {
                for e in many {
                    a.value(e.value());
                }
            });
        }
    }
    b.finish()
}

/// The key of one pair; none for an empty one.
fn point(grid: &Grid, obj: &RawDoc, doc: &RawDoc) -> Result<Option<i64>> {
    let refused = |code, text: String| Err(Error::location(code, format!("{text} :: caused by :: {doc}")));
    let mut members = obj.iter();
    let Some(x) = members.next() else { return Ok(None) };
    let Some(y) = members.next() else {
        return refused(13068, "geo field only has 1 element".to_owned());
    };
    let (Some(x), Some(y)) = (parse::number(x.value()), parse::number(y.value())) else {
        return refused(13026, "geo values must be 'legacy coordinate pairs' for 2d indexes".to_owned());
    };
    let at = Xy { x, y };
    if !grid.holds(at) {
        return refused(13027, format!("point not in interval of {}", grid.interval()));
    }
    Ok(Some(grid.key(at)))
}
