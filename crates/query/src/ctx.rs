//! What a query is evaluated in: its collation, its variables and the outside world's few inputs.

use crate::collation::Collation;
use crate::expr::check_readable_var_name;
use crate::named::{Counting, Named};
use pando_base::{Error, HashMap, HashSet, Result, Timestamp, limits};
use pando_bson::{Bson, RawDoc, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Shared by filters, expressions, updates and stages of one operation. Cheap to clone.
#[derive(Clone)]
pub struct QueryCtx {
    /// `None` is the simple (binary) collation.
    pub collation: Option<Arc<Collation>>,
    pub vars: Arc<Variables>,
    /// Runs JavaScript; `None` where that is not allowed.
    pub scripts: Option<Arc<dyn crate::script::Scripts>>,
    /// For `$rand`, `$sampleRate` and `$sample`.
    pub random: Arc<dyn Random>,
    /// Bytes of expressions that were evaluated ahead.
    pub folded: Arc<AtomicUsize>,
    pub joined: Arc<Joined>,
    /// Where parsers count the names they come across, until the request is read.
    pub named: Option<Arc<Counting>>,
    pub memory: Memory,
    pub text_index: TextIndex,
}

/// Whether `$text` in a command's query has an index to search.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum TextIndex {
    /// There is one, or who plans the query will look.
    #[default]
    Unknown,
    Missing,
    /// Nor the collection of that name.
    NoCollection(Arc<str>),
}

/// How many bytes the parts of an operation may hold each; a server has a parameter for every one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// A sort, wherever it stands.
    pub sort: usize,
    pub group: usize,
    /// A partition of `$setWindowFields`.
    pub window: usize,
    /// What `$lookup` puts into one document.
    pub join: usize,
    /// What `$lookup` keeps of a foreign collection.
    pub join_cache: usize,
    /// The document that `$facet` makes.
    pub facet: usize,
    /// The partitions of `$densify`, and how many documents it makes.
    pub densify: usize,
    pub densified_docs: usize,
    pub push: usize,
    pub add_to_set: usize,
    /// `$firstN` and its kin.
    pub top_n: usize,
    pub range: usize,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            sort: limits::SORT_MEMORY_BYTES_MAX,
            group: limits::GROUP_BYTES_MAX,
            window: limits::WINDOW_BYTES_MAX,
            join: limits::LOOKUP_OUTPUT_BYTES_MAX,
            join_cache: limits::LOOKUP_CACHE_BYTES_MAX,
            facet: limits::FACET_OUTPUT_BYTES_MAX,
            densify: limits::DENSIFY_PARTITION_BYTES_MAX,
            densified_docs: limits::DENSIFY_DOCS_MAX as usize,
            push: limits::ACCUMULATED_ARRAY_BYTES_MAX,
            add_to_set: limits::ACCUMULATED_ARRAY_BYTES_MAX,
            top_n: limits::ACCUMULATED_ARRAY_BYTES_MAX,
            range: limits::EXPRESSION_ARRAY_BYTES_MAX,
        }
    }
}

/// Bytes that all joins of an operation hold, however they nest.
#[derive(Debug, Default)]
pub struct Joined {
    /// Of foreign collections read whole.
    pub cached: AtomicUsize,
    /// Matches of documents that are being put together.
    pub matched: AtomicUsize,
}

/// System and user variables (`$$NOW`, `let`).
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// `$$NOW`: wall clock in Unix milliseconds, fixed for the whole operation.
    pub now_ms: i64,
    /// `$$CLUSTER_TIME`; `None` on a server without a log.
    pub cluster_time: Option<Timestamp>,
    /// The command's `let` document and what joins bind, already evaluated.
    pub let_vars: Lets,
    /// Names that will have values when the sub-pipeline being checked runs.
    pub unbound: HashSet<String>,
    /// The database that stages name other collections of.
    pub db: String,
    /// How many pipelines this one is inside of.
    pub depth: usize,
    /// A view is being defined: constants are not evaluated ahead, and what goes wrong with them is told to who reads the view.
    pub defines: bool,
}

/// Values by name; `None` is a missing value. The last of a name counts.
#[derive(Clone, Debug, Default)]
pub struct Lets(HashMap<String, Option<Bson>>);

impl Lets {
    pub fn set(&mut self, name: &str, value: Option<Bson>) {
        self.0.insert(name.to_owned(), value);
    }
    pub fn get(&self, name: &str) -> Option<&Option<Bson>> {
        self.0.get(name)
    }
    /// In no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&Bson>)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_ref()))
    }
}

impl FromIterator<(String, Option<Bson>)> for Lets {
    fn from_iter<I: IntoIterator<Item = (String, Option<Bson>)>>(all: I) -> Lets {
        Lets(all.into_iter().collect())
    }
}

/// A source of random bits (the environment's in a server, a counter in tests).
pub trait Random: Send + Sync {
    fn next_u64(&self) -> u64;
    /// Uniform in `[0, 1)`.
    fn next_f64(&self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// SplitMix64 from a fixed seed: repeatable.
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom(AtomicU64::new(seed))
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        let mut z = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl std::fmt::Debug for QueryCtx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryCtx").field("vars", &self.vars).finish_non_exhaustive()
    }
}

impl Default for QueryCtx {
    /// Simple collation, no variables, a fixed random sequence.
    fn default() -> QueryCtx {
        QueryCtx {
            collation: None,
            vars: Arc::default(),
            scripts: None,
            random: Arc::new(SeededRandom::new(0)),
            folded: Arc::default(),
            joined: Arc::default(),
            named: None,
            memory: Memory::default(),
            text_index: TextIndex::default(),
        }
    }
}

impl QueryCtx {
    /// Order of two values under the collation.
    pub fn compare(&self, a: Value<'_>, b: Value<'_>) -> std::cmp::Ordering {
        pando_bson::compare::cmp_values_with(a, b, Collation::order(&self.collation))
    }
    /// Whether so much more of what can be known ahead may be kept.
    pub(crate) fn may_keep(&self, bytes: usize) -> bool {
        let fits = |kept: usize| Some(kept + bytes).filter(|n| *n <= limits::FOLDED_BYTES_MAX);
        bytes == 0 || self.folded.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }
    /// Who counts what is being parsed, if it is counted.
    pub(crate) fn counts(&self) -> Option<&Named> {
        self.named.as_ref()?.now()
    }
    /// The request is read: what is parsed from now on was parsed before.
    pub(crate) fn end_counting(&self) {
        if let Some(named) = &self.named {
            named.end();
        }
    }
    pub fn with_collation(mut self, collation: Option<Arc<Collation>>) -> QueryCtx {
        self.collation = collation;
        self
    }
    /// With the constants `c` of a pipeline update: variables with literal values. They hide a `let` of the same name.
    pub fn with_constants(mut self, constants: &RawDoc) -> Result<QueryCtx> {
        let mut vars = (*self.vars).clone();
        for e in constants {
            let name = e.name();
            if matches!(
                name,
                "NOW" | "CLUSTER_TIME" | "JS_SCOPE" | "IS_MR" | "USER_ROLES" | "SEARCH_META" | "ROOT"
            ) {
                return Err(Error::location(17275, "Can't redefine a non-user-writable variable"));
            }
            check_readable_var_name(name)?;
            vars.let_vars.set(name, Some(Bson::from(e.value())));
        }
        self.vars = Arc::new(vars);
        Ok(self)
    }
}
