//! What the fields of a `create` mean together, in the order in which MongoDB tells it. Nothing is looked up: what
//! exists is the business of whoever creates.

use super::create::{Clustered, CreateArgs};
use super::encrypted_fields;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_index::{check_reach, storage_engine, ttl_seconds};
use pando_query::timeseries::TimeSeries;

impl CreateArgs<'_> {
    pub fn is_capped(&self) -> bool {
        self.capped == Some(true)
    }
    /// `indexOptionDefaults` without what is null; `None` when nothing is left.
    pub fn given_index_defaults(&self) -> Option<DocBuf> {
        let mut kept = DocBuilder::new();
        for e in self.index_option_defaults?.iter().filter(|e| e.value().as_doc().is_some()) {
            kept.elem(e);
        }
        Some(kept.finish()).filter(|d| !d.is_empty())
    }
    pub fn is_clustered(&self) -> bool {
        matches!(self.clustered, Some(Clustered::Spec { .. } | Clustered::Legacy(true)))
    }

    /// Error when the fields do not go together for the collection `ns`. Rows that are older than `now_secs` of the clock
    /// cannot be asked for.
    pub fn check_form(&self, ns: &Namespace) -> Result<()> {
        if self.clustered.is_some() {
            check_bounds_of_clustered(self)?;
        }
        check_capped(self)?;
        if self.temp.is_some() {
            return Err(invalid("the 'temp' field is an invalid option"));
        }
        if let Some(series) = self.time_series {
            check_series(ns, series, self)?;
        }
        if self.view_on.is_none() && self.pipeline.is_some() {
            return Err(invalid("'pipeline' requires 'viewOn' to also be specified"));
        }
        if let Some(config) = self.encrypted_fields {
            encrypted_fields::check(config, self)?;
        }
        let placed = self.time_series.is_some() || self.clustered.is_some();
        if self.expire_after_seconds.is_some() && !placed {
            return Err(invalid(
                "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' \
                 option is specified",
            ));
        }
        check_id_index(self)
    }
    /// What a view does not have.
    pub fn check_view(&self) -> Result<()> {
        if self.is_clustered() {
            return Err(Error::location(
                6_026_500,
                "The 'clusteredIndex' option is not supported with views",
            ));
        }
        match self.images {
            Some(true) => Err(invalid("option not supported on a view: changeStreamPreAndPostImages")),
            _ => Ok(()),
        }
    }
    /// The rest, which is told after whether there is a collection of that name already.
    pub fn check_content(&self, now_secs: i64) -> Result<()> {
        if let Some(clustered) = self.clustered {
            check_clustered(clustered, self)?;
        }
        if let Some(series) = self.time_series {
            TimeSeries::parse(series)?;
        }
        if let Some(v) = self.expire_after_seconds {
            if self.time_series.is_none() && !self.is_clustered() {
                return Err(invalid("'expireAfterSeconds' requires clustering to be enabled"));
            }
            check_reach(ttl_seconds(v)?, now_secs)?;
        }
        if self.encrypted_fields.is_some() {
            return Err(Error::new(
                ErrorCode::CommandNotSupported,
                "encrypted collections are not supported by this server yet",
            ));
        }
        storage_engine::check(self.storage_engine, self.index_option_defaults)?;
        Ok(())
    }
}

pub(super) fn invalid(message: &'static str) -> Error {
    Error::new(ErrorCode::InvalidOptions, message)
}

fn check_capped(a: &CreateArgs<'_>) -> Result<()> {
    match (a.is_capped(), a.size) {
        (true, None) if a.clustered.is_none() => {
            Err(invalid("the 'size' field is required when 'capped' is true"))
        }
        (false, size) if size.is_some() || a.max.is_some() => Err(invalid(
            "the 'capped' field needs to be true when either the 'size' or 'max' fields are present",
        )),
        _ => Ok(()),
    }
}

fn check_id_index(a: &CreateArgs<'_>) -> Result<()> {
    let Some(spec) = a.id_index else { return Ok(()) };
    let refuse = |with: &str| {
        let text = format!("'idIndex' is not allowed with '{with}': {spec}");
        Err(Error::new(ErrorCode::InvalidOptions, text))
    };
    if a.view_on.is_some() {
        return refuse("viewOn");
    }
    if a.auto_index_id.is_some() {
        return refuse("autoIndexId");
    }
    let collation = match a.collation {
        Some(c) => pando_index::full_collation(c)?,
        None => None,
    };
    pando_index::check_id_index_spec(spec, collation.as_deref())
}

/// A time series decides for itself what its buckets are like.
fn check_series(ns: &Namespace, series: &RawDoc, a: &CreateArgs<'_>) -> Result<()> {
    let refused = [
        ("capped", a.is_capped()),
        ("autoIndexId", a.auto_index_id.is_some()),
        ("idIndex", a.id_index.is_some()),
        ("size", a.size.is_some()),
        ("max", a.max.is_some()),
        ("validator", a.validator.is_some()),
        ("validationLevel", a.validation_level.is_some()),
        ("validationAction", a.validation_action.is_some()),
        ("viewOn", a.view_on.is_some()),
        ("pipeline", a.pipeline.is_some()),
        ("changeStreamPreAndPostImages", a.images.is_some()),
        ("clusteredIndex", a.clustered.is_some()),
        ("flags", a.flags.is_some()),
    ];
    if let Some((name, _)) = refused.iter().find(|(_, given)| *given) {
        let text = format!("{ns}: 'timeseries' is not allowed with '{name}'");
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let text = |name: &str| series.get(name).and_then(|v| v.as_str());
    TimeSeries::check_names(ns.as_str(), text("timeField").unwrap_or_default(), text("metaField"))
}

/// The bound of a clustered collection is a time.
fn check_bounds_of_clustered(a: &CreateArgs<'_>) -> Result<()> {
    let (code, field) = match (a.size, a.max) {
        (Some(_), _) => (6_049_200, "size"),
        (None, Some(_)) => (6_049_204, "max"),
        (None, None) if a.is_capped() && a.expire_after_seconds.is_none() => {
            return Err(Error::location(
                6_049_201,
                "A capped clustered collection requires the 'expireAfterSeconds' field",
            ));
        }
        (None, None) => return Ok(()),
    };
    Err(Error::location(
        code,
        format!(
            "'{field}' field for capped collections is not allowed on clustered collections. Did you mean 'capped: \
             true' with 'expireAfterSeconds'?"
        ),
    ))
}

fn check_clustered(clustered: Clustered<'_>, a: &CreateArgs<'_>) -> Result<()> {
    if let Clustered::Legacy(false) = clustered {
        return Ok(());
    }
    let Clustered::Spec { key, unique, name, version } = clustered else {
        return Err(Error::location(
            5_979_703,
            "The 'clusteredIndex' legacy format {clusteredIndex: <bool>} is only supported for specific internal \
             collections and vice versa",
        ));
    };
    if a.id_index.is_some() {
        return Err(invalid("The 'clusteredIndex' option is not supported with the 'idIndex' option"));
    }
    if a.auto_index_id == Some(false) {
        return Err(Error::location(
            6_026_501,
            "The 'clusteredIndex' option does not support {autoIndexId: false}",
        ));
    }
    if !unique {
        return Err(Error::location(
            5_979_700,
            "The clusteredIndex option requires unique: true to be specified",
        ));
    }
    let by_id = key.count() == 1 && key.get("_id").and_then(|v| v.as_f64()) == Some(1.0);
    if !by_id {
        return Err(Error::new(
            ErrorCode::InvalidIndexSpecificationOption,
            "The clusteredIndex option is only supported for key: {_id: 1}",
        ));
    }
    if version != 2 {
        return Err(Error::location(
            5_979_704,
            format!(
                "Invalid clusteredIndex specification {{ v: {version}, key: {key}, name: \"{name}\", unique: {unique} }}; \
                 cannot create a clusteredIndex with v={version}"
            ),
        ));
    }
    Ok(())
}
