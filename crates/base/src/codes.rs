//! MongoDB's error numbers, names and classes: one table, from which everything else derives.
//!
//! A number without a row is legal (`Location<n>`): assertions deep in the query language have only a number.

use std::fmt;

/// An error number. Compare with the constants; ask [`ErrorCode::name`] for `codeName`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub i32);

pub mod class;

use class::*;

/// Drivers repeat both reads and writes.
const DRIVERS_RETRY: u32 = RETRYABLE_WRITE | RETRYABLE_READ;

macro_rules! codes {
    ($($number:literal $name:ident $class:expr;)*) => {
        #[allow(non_upper_case_globals)]
        impl ErrorCode {
            pub const OK: ErrorCode = ErrorCode(0);
            $(pub const $name: ErrorCode = ErrorCode($number);)*
        }
        /// (number, name, class bits), ascending.
        pub const TABLE: &[(i32, &str, u32)] = &[$(($number, stringify!($name), $class),)*];
    };
}

codes! {
    1 InternalError 0;
    2 BadValue 0;
    4 NoSuchKey 0;
    5 GraphContainsCycle 0;
    6 HostUnreachable RETRIABLE | NETWORK | DRIVERS_RETRY;
    7 HostNotFound RETRIABLE | NETWORK | DRIVERS_RETRY;
    8 UnknownError 0;
    9 FailedToParse 0;
    11 UserNotFound 0;
    12 UnsupportedFormat 0;
    13 Unauthorized 0;
    14 TypeMismatch 0;
    15 Overflow 0;
    16 InvalidLength 0;
    17 ProtocolError 0;
    18 AuthenticationFailed 0;
    20 IllegalOperation 0;
    21 EmptyArrayOperation 0;
    22 InvalidBSON 0;
    23 AlreadyInitialized 0;
    24 LockTimeout TRANSIENT_IN_TXN | INTERRUPTION | ENDS_COMMAND;
    26 NamespaceNotFound 0;
    27 IndexNotFound 0;
    28 PathNotViable 0;
    31 RoleNotFound 0;
    32 RolesNotRelated 0;
    33 PrivilegeNotFound 0;
    34 CannotBackfillArray 0;
    35 UserModificationFailed 0;
    37 FileRenameFailed 0;
    38 FileNotOpen 0;
    40 ConflictingUpdateOperators 0;
    43 CursorNotFound RESUMABLE | CURSOR_INVALIDATED;
    46 LockBusy 0;
    47 NoMatchingDocument 0;
    48 NamespaceExists 0;
    49 InvalidRoleModification 0;
    50 MaxTimeMSExpired INTERRUPTION | EXCEEDED_TIME | ENDS_COMMAND;
    51 ManualInterventionRequired 0;
    52 DollarPrefixedFieldName 0;
    53 InvalidIdField 0;
    54 NotSingleValueField 0;
    55 InvalidDBRef 0;
    56 EmptyFieldName 0;
    57 DottedFieldName 0;
    59 CommandNotFound 0;
    61 ShardKeyNotFound 0;
    63 StaleShardVersion RESUMABLE | STALE_ROUTING;
    64 WriteConcernFailed 0;
    65 MultipleErrorsOccurred 0;
    66 ImmutableField 0;
    67 CannotCreateIndex 0;
    68 IndexAlreadyExists 0;
    69 AuthSchemaIncompatible 0;
    70 ShardNotFound 0;
    71 ReplicaSetNotFound 0;
    72 InvalidOptions 0;
    73 InvalidNamespace 0;
    74 NodeNotFound 0;
    75 WriteConcernLegacyOK 0;
    76 NoReplicationEnabled 0;
    79 UnknownReplWriteConcern 0;
    82 NoProgressMade 0;
    85 IndexOptionsConflict 0;
    86 IndexKeySpecsConflict 0;
    87 CannotSplit 0;
    89 NetworkTimeout RETRIABLE | NETWORK | DRIVERS_RETRY;
    90 CallbackCanceled 0;
    91 ShutdownInProgress RETRIABLE | RECOVERING | SHUTDOWN | DRIVERS_RETRY | ENDS_COMMAND;
    92 SecondaryAheadOfPrimary 0;
    93 InvalidReplicaSetConfig 0;
    94 NotYetInitialized 0;
    95 NotSecondary 0;
    96 OperationFailed CURSOR_INVALIDATED;
    100 UnsatisfiableWriteConcern 0;
    101 OutdatedClient 0;
    103 NewReplicaSetConfigurationIncompatible 0;
    104 NodeNotElectable 0;
    105 IncompatibleShardingMetadata 0;
    107 LockFailed 0;
    108 InconsistentReplicaSetNames 0;
    109 ConfigurationInProgress 0;
    110 CannotInitializeNodeWithData 0;
    111 NotExactValueField 0;
    112 WriteConflict TRANSIENT_IN_TXN;
    113 InitialSyncFailure 0;
    114 InitialSyncOplogSourceMissing 0;
    115 CommandNotSupported 0;
    117 ConflictingOperationInProgress 0;
    118 NamespaceNotSharded 0;
    119 InvalidSyncSource 0;
    120 OplogStartMissing 0;
    121 DocumentValidationFailure 0;
    123 NotAReplicaSet 0;
    124 IncompatibleElectionProtocol 0;
    125 CommandFailed 0;
    127 UnrecoverableRollbackError 0;
    133 FailedToSatisfyReadPreference RESUMABLE;
    134 ReadConcernMajorityNotAvailableYet RETRIABLE | RETRYABLE_READ;
    135 StaleTerm 0;
    136 CappedPositionLost 0;
    138 RemoteOplogStale 0;
    139 JSInterpreterFailure 0;
    140 InvalidSSLConfiguration 0;
    141 SSLHandshakeFailed 0;
    143 CursorInUse 0;
    146 ExceededMemoryLimit ENDS_BATCH;
    148 ReadConcernMajorityNotEnabled 0;
    149 NoConfigPrimary 0;
    150 StaleEpoch TRANSIENT_IN_TXN | RESUMABLE | STALE_ROUTING;
    152 OplogOutOfOrder 0;
    153 ChunkTooBig 0;
    155 CannotApplyOplogWhilePrimary 0;
    159 DurationOverflow 0;
    160 MaxStalenessOutOfRange 0;
    161 IncompatibleCollationVersion 0;
    162 CollectionIsEmpty 0;
    163 ZoneStillInUse 0;
    164 InitialSyncActive 0;
    165 ViewDepthLimitExceeded 0;
    166 CommandNotSupportedOnView 0;
    167 OptionNotSupportedOnView 0;
    168 InvalidPipelineOperator 0;
    169 CommandOnShardedViewNotSupportedOnMongod 0;
    171 CannotIndexParallelArrays 0;
    175 QueryPlanKilled CURSOR_INVALIDATED;
    177 ZoneNotFound 0;
    178 RangeOverlapConflict 0;
    181 AmbiguousIndexKeyPattern 0;
    182 InvalidViewDefinition 0;
    183 ClientMetadataMissingField 0;
    184 ClientMetadataAppNameTooLarge 0;
    185 ClientMetadataDocumentTooLarge 0;
    186 ClientMetadataCannotBeMutated 0;
    187 LinearizableReadConcernError 0;
    188 IncompatibleServerVersion 0;
    189 PrimarySteppedDown RETRIABLE | RECOVERING | DRIVERS_RETRY | ENDS_COMMAND;
    193 NoShardingEnabled 0;
    194 BalancerInterrupted 0;
    195 ViewPipelineMaxSizeExceeded 0;
    197 InvalidIndexSpecificationOption 0;
    200 ChunkRangeCleanupPending 0;
    201 CannotBuildIndexKeys 0;
    202 NetworkInterfaceExceededTimeLimit EXCEEDED_TIME;
    203 ShardingStateNotInitialized 0;
    204 TimeProofMismatch 0;
    205 ClusterTimeFailsRateLimiter 0;
    206 NoSuchSession 0;
    207 InvalidUUID 0;
    209 StaleClusterTime 0;
    210 CannotVerifyAndSignLogicalTime 0;
    211 KeyNotFound 0;
    213 DuplicateSession 0;
    214 AuthenticationRestrictionUnmet 0;
    215 DatabaseDropPending 0;
    216 ElectionInProgress 0;
    217 IncompleteTransactionHistory ENDS_COMMAND;
    218 UpdateOperationFailed 0;
    221 IndexModified 0;
    222 CloseChangeStream 0;
    223 IllegalOpMsgFlag CLOSES;
    224 QueryFeatureNotAllowed 0;
    225 TransactionTooOld ENDS_COMMAND;
    226 AtomicityFailure 0;
    227 CannotImplicitlyCreateCollection 0;
    228 SessionTransferIncomplete 0;
    232 MaxSubPipelineDepthExceeded 0;
    233 TooManyDocumentSequences CLOSES;
    234 RetryChangeStream RESUMABLE;
    235 InternalErrorNotSupported 0;
    237 CursorKilled INTERRUPTION | CURSOR_INVALIDATED | ENDS_COMMAND;
    238 NotImplemented 0;
    239 SnapshotTooOld TRANSIENT_IN_TXN;
    241 ConversionFailure 0;
    242 CannotCreateCollection 0;
    246 SnapshotUnavailable TRANSIENT_IN_TXN;
    249 StaleDbVersion TRANSIENT_IN_TXN | STALE_ROUTING;
    250 StaleChunkHistory TRANSIENT_IN_TXN;
    251 NoSuchTransaction TRANSIENT_IN_TXN;
    256 TransactionCommitted 0;
    257 TransactionTooLarge 0;
    258 UnknownFeatureCompatibilityVersion 0;
    260 InvalidResumeToken 0;
    261 TooManyLogicalSessions 0;
    262 ExceededTimeLimit RETRIABLE | INTERRUPTION | DRIVERS_RETRY | EXCEEDED_TIME | ENDS_COMMAND;
    263 OperationNotSupportedInTransaction 0;
    264 TooManyFilesOpen 0;
    265 OrphanedRangeCleanUpFailed 0;
    266 FailPointSetFailed 0;
    267 PreparedTransactionInProgress TRANSIENT_IN_TXN;
    272 MigrationConflict TRANSIENT_IN_TXN;
    276 IndexBuildAborted 0;
    278 UnsatisfiableCommitQuorum 0;
    279 ClientDisconnect INTERRUPTION | ENDS_COMMAND;
    280 ChangeStreamFatalError 0;
    281 TransactionCoordinatorSteppingDown INTERRUPTION | ENDS_COMMAND;
    282 TransactionCoordinatorReachedAbortDecision INTERRUPTION | ENDS_COMMAND;
    283 WouldChangeOwningShard 0;
    285 IndexBuildAlreadyInProgress 0;
    286 ChangeStreamHistoryLost 0;
    288 ChecksumMismatch CLOSES;
    290 TransactionExceededLifetimeLimitSeconds INTERRUPTION | EXCEEDED_TIME | ENDS_COMMAND;
    291 NoQueryExecutionPlans 0;
    292 QueryExceededMemoryLimitNoDiskUseAllowed 0;
    303 SplitHorizonChange CLOSES;
    308 CurrentConfigNotCommittedYet 0;
    309 ExhaustCommandFinished 0;
    313 ResumableRangeDeleterDisabled 0;
    314 ObjectIsBusy CURSOR_INVALIDATED;
    315 TooStaleToSyncFromSource 0;
    319 MovePrimaryInProgress 0;
    320 TenantMigrationConflict ENDS_COMMAND;
    321 TenantMigrationCommitted TRANSIENT_IN_TXN | ENDS_COMMAND;
    322 APIVersionError 0;
    323 APIStrictError 0;
    324 APIDeprecationError 0;
    325 TenantMigrationAborted TRANSIENT_IN_TXN | ENDS_COMMAND;
    326 OplogQueryMinTsMissing 0;
    327 NoSuchTenantMigration 0;
    329 TenantMigrationInProgress 0;
    332 CannotDowngrade 0;
    334 MechanismUnavailable 0;
    335 TenantMigrationForgotten 0;
    337 AuthenticationAbandoned 0;
    338 ReshardCollectionInProgress 0;
    339 NoSuchReshardCollection 0;
    340 ReshardCollectionCommitted 0;
    341 ReshardCollectionAborted 0;
    342 ReshardingCriticalSectionTimeout 0;
    343 ShardCannotRefreshDueToLocksHeld TRANSIENT_IN_TXN;
    346 ChangeStreamInvalidated 0;
    347 APIMismatchError 0;
    348 ChangeStreamTopologyChange 0;
    351 ChangeStreamStartAfterInvalidate 0;
    352 UnsupportedOpQueryCommand 0;
    354 LoadBalancerSupportMismatch CLOSES;
    355 InterruptedDueToStorageChange INTERRUPTION | ENDS_COMMAND;
    356 TxnRetryCounterTooOld 0;
    357 InvalidBSONType 0;
    358 InternalTransactionNotSupported RETRIABLE;
    359 CannotConvertIndexToUnique 0;
    361 CollectionUUIDMismatch 0;
    363 RetryableTransactionInProgress 0;
    365 TemporarilyUnavailable 0;
    367 ResumeTenantChangeStream RESUMABLE;
    370 CannotDropShardKeyIndex 0;
    371 UserWritesBlocked 0;
    376 ChangeStreamNotEnabled 0;
    378 NonConformantBSON 0;
    385 ConflictingServerlessOperation 0;
    386 DuplicateKeyId 0;
    388 TransactionTooLargeForCache 0;
    391 ReauthenticationRequired 0;
    398 StreamTerminated CLOSES;
    400 CannotUpgrade 0;
    402 ResourceExhausted RETRIABLE;
    406 MigrationBlockingOperationCoordinatorCleaningUp RETRIABLE;
    407 PooledConnectionAcquisitionExceededTimeLimit RETRIABLE | EXCEEDED_TIME;
    411 QueryRejectedBySettings 0;
    412 UpdatesStillPending RETRIABLE;
    414 AddOrRemoveShardInProgress 0;
    431 ChunkMetadataInconsistency 0;
    433 AdmissionQueueOverflow OVERLOAD;
    449 RateLimitExceeded OVERLOAD;
    450 PooledConnectionAcquisitionRejected OVERLOAD;
    453 InterruptedDueToReshardingCriticalSection RETRIABLE | INTERRUPTION | ENDS_COMMAND;
    462 IngressRequestRateLimitExceeded RETRIABLE | OVERLOAD;
    9001 SocketException RETRIABLE | NETWORK | DRIVERS_RETRY;
    10003 CannotGrowDocumentInCappedNamespace 0;
    10058 LegacyNotPrimary NOT_PRIMARY | ENDS_COMMAND;
    10107 NotWritablePrimary RETRIABLE | NOT_PRIMARY | DRIVERS_RETRY | ENDS_COMMAND;
    10334 BSONObjectTooLarge 0;
    11000 DuplicateKey 0;
    11600 InterruptedAtShutdown RETRIABLE | RECOVERING | SHUTDOWN | INTERRUPTION | DRIVERS_RETRY | ENDS_COMMAND;
    11601 Interrupted INTERRUPTION | ENDS_COMMAND;
    11602 InterruptedDueToReplStateChange RETRIABLE | RECOVERING | INTERRUPTION | DRIVERS_RETRY | ENDS_COMMAND;
    12586 BackgroundOperationInProgressForDatabase 0;
    12587 BackgroundOperationInProgressForNamespace 0;
    13113 MergeStageNoMatchingDocument 0;
    13297 DatabaseDifferCase 0;
    13388 StaleConfig TRANSIENT_IN_TXN | RESUMABLE | STALE_ROUTING;
    13435 NotPrimaryNoSecondaryOk RETRIABLE | NOT_PRIMARY | DRIVERS_RETRY | ENDS_COMMAND;
    13436 NotPrimaryOrSecondary RETRIABLE | RECOVERING | DRIVERS_RETRY | ENDS_COMMAND;
    14031 OutOfDiskSpace ENDS_BATCH;
    17280 KeyTooLong 0;
    28769 NamespaceCannotBeSharded 0;
    31082 SearchNotEnabled 0;
    40413 IDLDuplicateField 0;
    40414 IDLFailedToParse 0;
    40415 IDLUnknownField 0;
    46841 ClientMarkedKilled INTERRUPTION | ENDS_COMMAND;
    50768 NotARetryableWriteCommand 0;
    91331 RetriableRemoteCommandFailure RETRIABLE | INTERRUPTION | ENDS_COMMAND;
    1003141 RemoveShardDrainingInProgress 0;
    10045600 InterruptedDueToFCVChange RETRIABLE | INTERRUPTION | ENDS_COMMAND;
}

impl ErrorCode {
    /// The `codeName` of a reply: the table's name, or `Location<n>`.
    pub fn name(self) -> std::borrow::Cow<'static, str> {
        if self.0 == 0 {
            return "OK".into();
        }
        match self.row() {
            Some(row) => row.1.into(),
            None => format!("Location{}", self.0).into(),
        }
    }
    /// The number behind a `codeName`, for fail points and tools.
    pub fn from_name(name: &str) -> Option<ErrorCode> {
        TABLE.iter().find(|row| row.1 == name).map(|row| ErrorCode(row.0))
    }
    /// Bits of [`class`].
    pub fn class(self) -> u32 {
        self.row().map_or(0, |row| row.2)
    }
    pub fn is(self, bits: u32) -> bool {
        self.class() & bits != 0
    }
    /// See [`class::ENDS_COMMAND`].
    pub fn ends_command(self) -> bool {
        self.is(ENDS_COMMAND)
    }
    /// The tenant is about to be elsewhere, is, or stays after all (SV-MTAB-2).
    pub fn is_of_tenant(self) -> bool {
        matches!(
            self,
            ErrorCode::TenantMigrationConflict
                | ErrorCode::TenantMigrationCommitted
                | ErrorCode::TenantMigrationAborted
        )
    }
    /// It ends a command as a whole; but where something of it was done already, what that was must be told.
    pub fn ends_batch_of(self, done: bool) -> bool {
        self.ends_command() && !(done && self.is_of_tenant())
    }
    /// No document behind this one is inserted, in whatever order they may be.
    pub fn ends_batch(self) -> bool {
        self.is(ENDS_COMMAND | ENDS_BATCH)
    }
    fn row(self) -> Option<&'static (i32, &'static str, u32)> {
        TABLE.binary_search_by_key(&self.0, |row| row.0).ok().map(|i| &TABLE[i])
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

#[cfg(test)]
mod tests;
