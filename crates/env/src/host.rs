//! The machine and the process as monitoring commands report them (`hostInfo`, `serverStatus`).

/// What does not change while the process lives.
#[derive(Clone, Debug, Default)]
pub struct HostFacts {
    pub hostname: String,
    pub pid: u32,
    pub memory_bytes: u64,
    /// Memory this process may use (a container's limit).
    pub memory_limit_bytes: u64,
    pub cores: u32,
    /// Cores that share no execution unit; 0 = not known, as in the next two.
    pub physical_cores: u32,
    pub sockets: u32,
    pub numa_nodes: u32,
    pub cpu_arch: String,
    /// `Linux`.
    pub os_type: String,
    /// Distribution.
    pub os_name: String,
    pub os_version: String,
    pub page_size: u64,
    pub open_files_max: u64,
}

/// What the process uses right now.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostUsage {
    pub resident_bytes: u64,
    pub virtual_bytes: u64,
    pub user_cpu_us: u64,
    pub system_cpu_us: u64,
    pub page_faults: u64,
    pub threads: u64,
}

pub trait Host: Send + Sync {
    fn facts(&self) -> HostFacts;
    fn usage(&self) -> HostUsage;
    /// Total and free bytes of the file system that holds the data, if known.
    fn disk_bytes(&self) -> Option<(u64, u64)> {
        None
    }
}

/// A machine that knows nothing about itself: simulation and tests.
#[derive(Debug)]
pub struct NoHost;

impl Host for NoHost {
    fn facts(&self) -> HostFacts {
        HostFacts {
            hostname: "localhost".to_owned(),
            pid: 1,
            cores: 1,
            os_type: "unknown".to_owned(),
            page_size: 4096,
            ..HostFacts::default()
        }
    }
    fn usage(&self) -> HostUsage {
        HostUsage::default()
    }
}
