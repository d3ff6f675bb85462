//! What may stand at a place of a program, and the fields of documents that have a fixed form.

/// The kind of a value at one place.
#[derive(Clone, Copy, Debug)]
pub enum K {
    // expressions, by what they should give
    Any,
    Num,
    Int,
    Str,
    Arr,
    Obj,
    ObjArr,
    StrArr,
    Date,
    Bool,
    Ts,
    Bin,
    // values that are not evaluated
    CAny,
    CBool,
    CInt,
    CNum,
    CStr,
    CObj,
    CArr,
    CDate,
    CUuid,
    CTs,
    /// One of a few words.
    Word(&'static [&'static str]),
    N(i32),
    Empty,
    // names
    Field,
    Path,
    Dollar,
    Var,
    Coll,
    Scratch,
    Fresh,
    Db,
    Ns,
    IndexName,
    Pattern,
    Flags,
    Unit,
    Zone,
    DateFormat,
    JsonType,
    Js,
    // larger forms
    Filter,
    FieldFilter,
    Sort,
    Projection,
    Update,
    Pipeline,
    /// Stages that only change one document.
    UpdatePipeline,
    Stage,
    Computed,
    Grouped,
    Outputs,
    Windowed,
    Schema,
    Collation,
    Hint,
    IndexKey,
    Doc,
    Geometry,
    ReadConcern,
    WriteConcern,
    Command,
    SessionId,
    /// `{name: expression}` under free names.
    Lets,
    /// A document with these fields.
    Spec(&'static [F]),
    /// A list of these.
    List(&'static K),
    /// A list of just these.
    Tuple(&'static [K]),
    /// `{field: kind}` under names of the documents.
    Map(&'static K),
    OneOf(&'static [K]),
}

/// A field of a form.
#[derive(Clone, Copy, Debug)]
pub struct F {
    pub name: &'static str,
    pub kind: K,
    pub needed: bool,
}

/// A field that is nearly always there.
macro_rules! need {
    ($name:expr, $kind:expr $(,)?) => {
        $crate::draw::kind::F { name: $name, kind: $kind, needed: true }
    };
}
/// A field that is there now and then.
macro_rules! may {
    ($name:expr, $kind:expr $(,)?) => {
        $crate::draw::kind::F { name: $name, kind: $kind, needed: false }
    };
}
pub(super) use {may, need};
