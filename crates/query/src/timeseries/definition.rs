//! What `create` says of a time series.

use pando_base::limits::BUCKET_SPAN_SECS_MAX;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::fields::safe_i64;
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, Elem, RawDoc, Value};

#[derive(Clone, Debug, PartialEq)]
pub struct TimeSeries {
    pub time_field: String,
    pub meta_field: Option<String>,
    pub bucketing: Bucketing,
}

/// What decides where buckets begin and how long they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucketing {
    Granularity(Granularity),
    /// Buckets of so many seconds, which begin at multiples of them.
    Span(i64),
}

/// How far apart the measurements of one source are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    Seconds,
    Minutes,
    Hours,
}

impl Granularity {
    const ALL: [Granularity; 3] = [Granularity::Seconds, Granularity::Minutes, Granularity::Hours];

    pub fn name(self) -> &'static str {
        match self {
            Granularity::Seconds => "seconds",
            Granularity::Minutes => "minutes",
            Granularity::Hours => "hours",
        }
    }
    /// How much time one bucket may span.
    pub fn span_secs(self) -> i64 {
        match self {
            Granularity::Seconds => 3600,
            Granularity::Minutes => 24 * 3600,
            Granularity::Hours => 30 * 24 * 3600,
        }
    }
    /// Buckets begin at multiples of this.
    pub fn rounding_secs(self) -> i64 {
        match self {
            Granularity::Seconds => 60,
            Granularity::Minutes => 3600,
            Granularity::Hours => 24 * 3600,
        }
    }
}

impl Bucketing {
    /// How much time one bucket may span.
    pub fn span_secs(self) -> i64 {
        match self {
            Bucketing::Granularity(g) => g.span_secs(),
            Bucketing::Span(secs) => secs,
        }
    }
    /// Buckets begin at multiples of this.
    pub fn rounding_secs(self) -> i64 {
        match self {
            Bucketing::Granularity(g) => g.rounding_secs(),
            Bucketing::Span(secs) => secs,
        }
    }
    /// From the three options together.
    fn of(granularity: Option<Granularity>, span: Option<i64>, rounding: Option<i64>) -> Result<Bucketing> {
        let invalid = |text: &'static str| Err(Error::new(ErrorCode::InvalidOptions, text));
        let fixed = |name: &str, default: i64| {
            Error::location(
                5_510_500,
                format!(
                    "Timeseries '{name}' is not configurable to a value other than the default of {default} for the \
                     provided granularity"
                ),
            )
        };
        match (granularity, span, rounding) {
            (None, Some(span), Some(rounding)) if span == rounding => Ok(Bucketing::Span(span)),
            (None, Some(_), Some(_)) => {
                invalid("Timeseries 'bucketRoundingSeconds' needs to be equal to 'bucketMaxSpanSeconds'")
            }
            // Before 6.3 the span could be said alone, when it was that of the granularity.
            (None, Some(span), None) if span != Granularity::Seconds.span_secs() => invalid(ALONGSIDE),
            (None, None, Some(_)) => invalid(ALONGSIDE),
            _ => {
                let g = granularity.unwrap_or(Granularity::Seconds);
                if span.is_some_and(|n| n != g.span_secs()) {
                    return Err(fixed("bucketMaxSpanSeconds", g.span_secs()));
                }
                if rounding.is_some_and(|n| n != g.rounding_secs()) {
                    return Err(fixed("bucketRoundingSeconds", g.rounding_secs()));
                }
                Ok(Bucketing::Granularity(g))
            }
        }
    }
}

const ALONGSIDE: &str =
    "Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' need to be set alongside each other";

fn wrong_type(owner: &str, name: &str, v: Value<'_>, want: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '{owner}.{name}' is the wrong type '{}', expected {want}",
        v.type_name()
    ))
}

/// Those of [`Options`].
const OPTIONS: [&str; 3] = ["granularity", "bucketMaxSpanSeconds", "bucketRoundingSeconds"];

/// `{granularity, bucketMaxSpanSeconds, bucketRoundingSeconds}` of a command.
#[derive(Default)]
struct Options {
    granularity: Option<Granularity>,
    span: Option<i64>,
    rounding: Option<i64>,
}

impl Options {
    /// Takes one field in; false when it is none of the three.
    fn take(&mut self, owner: &str, e: Elem<'_>) -> Result<bool> {
        let v = e.value();
        match e.name() {
            "granularity" => {
                let name = v.as_str().ok_or_else(|| wrong_type(owner, "granularity", v, "type 'string'"))?;
                let known = Granularity::ALL.into_iter().find(|g| g.name() == name);
                self.granularity = Some(known.ok_or_else(|| {
                    Error::bad_value(format!(
                        "Enumeration value '{name}' for field '{owner}.granularity' is not a valid value."
                    ))
                })?);
            }
            "bucketMaxSpanSeconds" => self.span = Some(seconds(owner, e)?),
            "bucketRoundingSeconds" => self.rounding = Some(seconds(owner, e)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn seconds(owner: &str, e: Elem<'_>) -> Result<i64> {
    let (name, v) = (e.name(), e.value());
    if !v.is_number() {
        return Err(wrong_type(owner, name, v, "types '[long, int, decimal, double']"));
    }
    let n = safe_i64(&v).unwrap_or(0);
    let bound = |sign: &str, bound: i64| {
        let text = format!("BSON field '{name}' value must be {sign} {bound}, actual value '{n}'");
        Err(Error::location(51024, text))
    };
    match n {
        ..1 => bound(">=", 1),
        1..=BUCKET_SPAN_SECS_MAX => Ok(n),
        _ => bound("<=", BUCKET_SPAN_SECS_MAX),
    }
}

impl TimeSeries {
    /// The `timeseries` document of `create`, or as stored.
    pub fn parse(spec: &RawDoc) -> Result<TimeSeries> {
        const OWNER: &str = "create.timeseries";
        let (mut time, mut meta, mut options) = (None, None, Options::default());
        for e in spec {
            let v = e.value();
            let known = OPTIONS.contains(&e.name()) || matches!(e.name(), "timeField" | "metaField");
            if known && matches!(v, Value::Null | Value::Undefined) {
                continue;
            }
            let text = |name| v.as_str().ok_or_else(|| wrong_type(OWNER, name, v, "type 'string'"));
            match e.name() {
                "timeField" => time = Some(text("timeField")?.to_owned()),
                "metaField" => meta = Some(text("metaField")?.to_owned()),
                _ if options.take(OWNER, e)? => {}
                other => {
                    return Err(Error::location(
                        40415,
                        format!("BSON field '{OWNER}.{other}' is an unknown field."),
                    ));
                }
            }
        }
        let time_field = time.ok_or_else(|| {
            Error::location(40414, format!("BSON field '{OWNER}.timeField' is missing but a required field"))
        })?;
        let Options { granularity, span, rounding } = options;
        let bucketing = Bucketing::of(granularity, span, rounding)?;
        Ok(TimeSeries { time_field, meta_field: meta, bucketing })
    }

    /// As `collMod` changes it: buckets only grow, so that no measurement has to move.
    pub fn modified(&self, change: &RawDoc) -> Result<TimeSeries> {
        const OWNER: &str = "collMod.timeseries";
        let mut options = Options::default();
        for e in change {
            if OPTIONS.contains(&e.name()) && matches!(e.value(), Value::Null | Value::Undefined) {
                continue;
            }
            if !options.take(OWNER, e)? {
                let text = format!("BSON field '{OWNER}.{}' is an unknown field.", e.name());
                return Err(Error::location(40415, text));
            }
        }
        let Options { granularity, span, rounding } = options;
        let bucketing = match (granularity, span, rounding) {
            (None, None, None) => self.bucketing,
            _ => Bucketing::of(granularity, span, rounding)?,
        };
        let refuse = |text: &'static str| Err(Error::new(ErrorCode::InvalidOptions, text));
        if bucketing.span_secs() < self.bucketing.span_secs() {
            return refuse(match bucketing {
                Bucketing::Granularity(_) => {
                    "Invalid transition for timeseries.granularity. Can only transition from 'seconds' to 'minutes' or \
                     'minutes' to 'hours'."
                }
                Bucketing::Span(_) => {
                    "Invalid transition for timeseries bucketing parameters. 'bucketMaxSpanSeconds' and \
                     'bucketRoundingSeconds' cannot be decreased."
                }
            });
        }
        Ok(TimeSeries { bucketing, ..self.clone() })
    }

    /// Checks the names of the fields of measurements; `ns` is the collection's, for messages.
    pub fn check_names(ns: &str, time_field: &str, meta_field: Option<&str>) -> Result<()> {
        let invalid = |text: String| Err(Error::new(ErrorCode::InvalidOptions, text));
        let top = |what: &str| format!("{ns}: '{what}' must be a top-level field and not contain a '.'");
        // Buckets have fields of these names.
        if [Some(time_field), meta_field].into_iter().flatten().any(|name| name.contains('\0')) {
            return Err(Error::location(16619, format!("{ns}: names of fields cannot contain NUL bytes")));
        }
        if time_field.contains('.') {
            return invalid(top("timeField"));
        }
        match meta_field {
            Some(m) if m.contains('.') => invalid(top("metaField")),
            Some("_id") => invalid("'metaField' cannot be \"_id\"".to_owned()),
            Some(m) if m == time_field => invalid("'metaField' cannot be the same as 'timeField'".to_owned()),
            _ => Ok(()),
        }
    }

    pub fn append_to(&self, b: &mut DocBuilder) {
        b.str("timeField", &self.time_field);
        if let Some(m) = &self.meta_field {
            b.str("metaField", m);
        }
        if let Bucketing::Granularity(g) = self.bucketing {
            b.str("granularity", g.name());
        }
        b.i32("bucketMaxSpanSeconds", self.bucketing.span_secs() as i32);
        if let Bucketing::Span(secs) = self.bucketing {
            b.i32("bucketRoundingSeconds", secs as i32);
        }
    }

    /// The pipeline of the view that users see.
    pub fn view_pipeline(&self) -> DocBuf {
        let mut a = ArrayBuilder::new();
        a.doc(|d| {
            d.doc("$_internalUnpackBucket", |u| {
                u.str("timeField", &self.time_field);
                if let Some(m) = &self.meta_field {
                    u.str("metaField", m);
                }
                u.i32("bucketMaxSpanSeconds", self.bucketing.span_secs() as i32);
            });
        });
        a.finish()
    }

    /// The index of sources and times that a series has from its beginning.
    pub fn first_index(&self) -> Option<DocBuf> {
        let meta = self.meta_field.as_deref()?;
        let mut b = DocBuilder::new();
        b.doc("key", |k| {
            k.i32(meta, 1).i32(&self.time_field, 1);
        });
        b.str("name", &format!("{meta}_1_{}_1", self.time_field));
        Some(b.finish())
    }

    /// The time that a bucket for this measurement begins at, in milliseconds.
    pub fn bucket_start(&self, time_ms: i64) -> i64 {
        let step = self.bucketing.rounding_secs() * 1000;
        time_ms.div_euclid(step).saturating_mul(step)
    }

    pub fn span_ms(&self) -> i64 {
        self.bucketing.span_secs() * 1000
    }

    /// The time of a measurement; code 2 when it has none.
    pub fn time_of(&self, measurement: &RawDoc) -> Result<i64> {
        match measurement.get(&self.time_field) {
            Some(Value::DateTime(ms)) => Ok(ms),
            _ => Err(Error::bad_value(format!(
                "'{}' must be present and contain a valid BSON UTC datetime value",
                self.time_field
            ))),
        }
    }
}
