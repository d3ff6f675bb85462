//! What `create` says of a time series.

use pando_base::{Error, ErrorCode, Result};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc, Value};

#[derive(Clone, Debug, PartialEq)]
pub struct TimeSeries {
    pub time_field: String,
    pub meta_field: Option<String>,
    pub granularity: Granularity,
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

const OWNER: &str = "create.timeseries";

fn wrong_type(name: &str, v: Value<'_>, want: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '{OWNER}.{name}' is the wrong type '{}', expected type '{want}'",
        v.type_name()
    ))
}

impl TimeSeries {
    /// The `timeseries` document of `create`, or as stored.
    pub fn parse(spec: &RawDoc) -> Result<TimeSeries> {
        let (mut time, mut meta, mut granularity, mut span, mut rounding) = (None, None, None, None, None);
        for e in spec {
            let v = e.value();
            match e.name() {
                "timeField" => {
                    time = Some(v.as_str().ok_or_else(|| wrong_type("timeField", v, "string"))?.to_owned());
                }
                "metaField" => {
                    meta = Some(v.as_str().ok_or_else(|| wrong_type("metaField", v, "string"))?.to_owned());
                }
                "granularity" => {
                    let name = v.as_str().ok_or_else(|| wrong_type("granularity", v, "string"))?;
                    let known = Granularity::ALL.into_iter().find(|g| g.name() == name);
                    granularity = Some(known.ok_or_else(|| {
                        Error::bad_value(format!(
                            "Enumeration value '{name}' for field '{OWNER}.granularity' is not a valid value."
                        ))
                    })?);
                }
                "bucketMaxSpanSeconds" => span = v.as_i64(),
                "bucketRoundingSeconds" => rounding = v.as_i64(),
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
        let granularity = granularity.unwrap_or(Granularity::Seconds);
        let fits = |n: Option<i64>, default: i64| n.is_none_or(|n| n == default);
        if !fits(span, granularity.span_secs()) || !fits(rounding, granularity.rounding_secs()) {
            return Err(Error::location(
                5_510_500,
                format!(
                    "Timeseries 'bucketMaxSpanSeconds' is not configurable to a value other than the default of {} \
                     for the provided granularity",
                    granularity.span_secs()
                ),
            ));
        }
        Ok(TimeSeries { time_field, meta_field: meta, granularity })
    }

    /// Checks the names; `ns` is the collection's, for messages.
    pub fn check(&self, ns: &str) -> Result<()> {
        let invalid = |text: String| Err(Error::new(ErrorCode::InvalidOptions, text));
        let top = |what: &str| format!("{ns}: '{what}' must be a top-level field and not contain a '.'");
        if self.time_field.contains('.') {
            return invalid(top("timeField"));
        }
        match self.meta_field.as_deref() {
            Some(m) if m.contains('.') => invalid(top("metaField")),
            Some("_id") => invalid("'metaField' cannot be \"_id\"".to_owned()),
            Some(m) if m == self.time_field => {
                invalid("'metaField' cannot be the same as 'timeField'".to_owned())
            }
            _ => Ok(()),
        }
    }

    pub fn append_to(&self, b: &mut DocBuilder) {
        b.str("timeField", &self.time_field);
        if let Some(m) = &self.meta_field {
            b.str("metaField", m);
        }
        b.str("granularity", self.granularity.name());
        b.i32("bucketMaxSpanSeconds", self.granularity.span_secs() as i32);
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
                u.i32("bucketMaxSpanSeconds", self.granularity.span_secs() as i32);
            });
        });
        a.finish()
    }

    /// The time that a bucket for this measurement begins at, in milliseconds.
    pub fn bucket_start(&self, time_ms: i64) -> i64 {
        let step = self.granularity.rounding_secs() * 1000;
        time_ms.div_euclid(step) * step
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
