//! `$jsonSchema`.
