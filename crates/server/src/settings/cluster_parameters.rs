//! Parameters of the whole set: documents of `config.clusterParameters`, which every member reads when one changes.
//!
//! There is one: `changeStreamOptions`, how long the documents before changes (pre-images) are shown.

use super::Settings;
use pando_access::Uninterrupted;
use pando_audit::Event;
use pando_base::{Error, ErrorCode, Millis, Namespace, Result, Timestamp};
use pando_bson::shape::{Field, Shape, check_fields};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_command::OpCtx;
use std::sync::{Arc, Mutex, PoisonError};

/// `_id` of the document, and the name in commands.
pub(crate) const CHANGE_STREAM_OPTIONS: &str = "changeStreamOptions";

pub(crate) fn cluster_parameters_ns() -> Namespace {
    Namespace::unchecked("config", "clusterParameters")
}

/// `changeStreamOptions`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ChangeStreamOptions {
    /// Seconds for which pre-images are shown; `None` ("off") = as long as their oplog entries are there.
    pub(crate) expire_after: Option<i64>,
    /// Cluster time of the change; zero = as the server came.
    pub(crate) time: Timestamp,
}

impl ChangeStreamOptions {
    /// What a client gives a parameter of that name.
    ///
    /// # Errors
    /// 20 for another name, and for what is no object; 2 for one that makes no sense.
    pub(crate) fn given(name: &str, value: Value<'_>, time: Timestamp) -> Result<ChangeStreamOptions> {
        let refuse = |text: String| Err(Error::new(ErrorCode::IllegalOperation, text));
        if name != CHANGE_STREAM_OPTIONS {
            return refuse(format!("Unknown Cluster Parameter {name}"));
        }
        match value {
            Value::Document(value) => ChangeStreamOptions::parse(value, time),
            _ => refuse("Cluster parameter value must be an object".to_owned()),
        }
    }
    /// Reads what a client sets: `{preAndPostImages: {expireAfterSeconds: "off" or seconds}}`.
    pub(crate) fn parse(value: &RawDoc, time: Timestamp) -> Result<ChangeStreamOptions> {
        const IMAGES: &[Field] = &[Field::required("expireAfterSeconds", Shape::Any)];
        const FIELDS: &[Field] = &[Field::required("preAndPostImages", Shape::Fields(IMAGES))];
        let failed =
            |e: Error| Error::bad_value(format!("Failed parsing new changeStreamOptions value{}", e.message));
        if let Some(own) = ["_id", "clusterParameterTime"].iter().find(|name| value.elem(name).is_some()) {
            return Err(failed(pando_bson::fields::duplicate(CHANGE_STREAM_OPTIONS, own)));
        }
        check_fields(FIELDS, CHANGE_STREAM_OPTIONS, value).map_err(failed)?;
        let images = value.get("preAndPostImages").and_then(|v| v.as_doc());
        let expire_after = match images.and_then(|d| d.get("expireAfterSeconds")) {
            Some(Value::String("off")) => None,
            Some(v) if v.is_number() => {
                let seconds = pando_command::args::safe_i64(&v).unwrap_or(0);
                if seconds <= 0 {
                    return Err(Error::bad_value("Numeric value of 'expireAfterSeconds' should be positive"));
                }
                Some(seconds)
            }
            _ => return Err(Error::bad_value("Non-numeric value of 'expireAfterSeconds' should be 'off'")),
        };
        Ok(ChangeStreamOptions { expire_after, time })
    }
    /// The stored document, which is what `getClusterParameter` shows as well.
    pub(crate) fn append_to(&self, b: &mut DocBuilder) {
        b.str("_id", CHANGE_STREAM_OPTIONS);
        b.timestamp("clusterParameterTime", self.time);
        b.doc("preAndPostImages", |d| {
            match self.expire_after {
                None => d.str("expireAfterSeconds", "off"),
                Some(seconds) => d.i64("expireAfterSeconds", seconds),
            };
        });
    }
    pub(crate) fn document(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        self.append_to(&mut b);
        b.finish()
    }
    /// Reads the stored document; one that makes no sense counts as absent.
    fn from_doc(doc: &RawDoc) -> Option<ChangeStreamOptions> {
        let Some(Value::Timestamp(time)) = doc.get("clusterParameterTime") else { return None };
        let images = doc.get("preAndPostImages").and_then(|v| v.as_doc())?;
        let expire_after = images.get("expireAfterSeconds").filter(|v| v.is_number());
        let expire_after = expire_after.and_then(|v| pando_command::args::safe_i64(&v));
        Some(ChangeStreamOptions { expire_after, time })
    }
    /// Whether the pre-image of a change of then is shown no more.
    pub(crate) fn hides(&self, changed: Millis, now: Millis) -> bool {
        self.expire_after.is_some_and(|s| changed.saturating_add(s.saturating_mul(1000)) < now)
    }
}

/// What is in force.
#[derive(Default)]
pub(crate) struct ClusterParameters(Mutex<Arc<ChangeStreamOptions>>);

impl ClusterParameters {
    pub(crate) fn change_streams(&self) -> Arc<ChangeStreamOptions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn set(&self, options: ChangeStreamOptions) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(options);
    }
}

impl Settings {
    /// Reads back what is stored, at the start and whenever this member applies a change of it.
    pub(super) fn restore_cluster_parameters(&self) -> Result<()> {
        let stored = self.internal.named(&cluster_parameters_ns(), CHANGE_STREAM_OPTIONS)?;
        let options = stored.and_then(|d| ChangeStreamOptions::from_doc(&d)).unwrap_or_default();
        let was = self.cluster_parameters.change_streams();
        if let Some(log) = self.instance.audit().filter(|_| *was != options) {
            let event = Event::update_cached_cluster_parameter(&was.document(), &options.document());
            log.record(&log.originator(), &event);
        }
        self.cluster_parameters.set(options);
        Ok(())
    }
    /// Stores what the config servers of a cluster say; `null`: nobody has set it.
    pub(crate) async fn keep_cluster_parameter(
        &self,
        name: &str,
        value: Value<'_>,
        time: Timestamp,
    ) -> Result<()> {
        let ns = cluster_parameters_ns();
        if let Value::Null = value {
            let mut key = DocBuilder::new();
            key.str("_id", name);
            self.internal.remove(&Uninterrupted, &ns, &key.finish()).await?;
        } else {
            let options = ChangeStreamOptions::given(name, value, time)?;
            self.internal.put(&Uninterrupted, &ns, &options.document()).await?;
        }
        self.restore_cluster_parameters()
    }
    /// Stores a value that a client gave, and puts it in force.
    pub(crate) async fn set_cluster_parameter(
        &self,
        ctx: &OpCtx,
        name: &str,
        value: Value<'_>,
    ) -> Result<()> {
        let options = ChangeStreamOptions::given(name, value, self.storage.log().clock())?;
        let doc = options.document();
        self.put(ctx, &cluster_parameters_ns(), &doc).await?;
        let was = self.cluster_parameters.change_streams();
        ctx.client.audit(|| Event::set_cluster_parameter(&was.document(), &doc));
        // What is stored is in force, whoever else has set it meanwhile.
        self.restore_cluster_parameters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn seconds_and_off_are_stored_and_read_back() {
        for (given, expire_after) in [
            (doc! { "preAndPostImages": { "expireAfterSeconds": 100 } }, Some(100)),
            (doc! { "preAndPostImages": { "expireAfterSeconds": "off" } }, None),
        ] {
            let options = ChangeStreamOptions::parse(&given.to_raw(), Timestamp::new(7, 3)).unwrap();
            assert_eq!(options.expire_after, expire_after);
            let mut b = DocBuilder::new();
            options.append_to(&mut b);
            assert_eq!(ChangeStreamOptions::from_doc(&b.finish()), Some(options));
        }
    }

    #[test]
    fn a_pre_image_is_hidden_when_its_time_is_over() {
        let options = ChangeStreamOptions { expire_after: Some(10), time: Timestamp::default() };
        assert!(!options.hides(1_000, 11_000) && options.hides(1_000, 11_001));
        assert!(!ChangeStreamOptions::default().hides(0, i64::MAX));
    }
}
