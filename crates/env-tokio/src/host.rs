//! What Linux tells about the machine and this process, from `/proc` and a few system calls.

use pando_env::{Host, HostFacts, HostUsage};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// This machine.
pub struct RealHost {
    facts: HostFacts,
    data: PathBuf,
}

impl RealHost {
    /// `data` is the folder whose file system `disk_bytes` describes.
    pub fn new(data: &Path) -> RealHost {
        let name = rustix::system::uname();
        let memory_bytes = line_kib("/proc/meminfo", "MemTotal:");
        let processors = processors(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default());
        let facts = HostFacts {
            hostname: name.nodename().to_string_lossy().into_owned(),
            pid: std::process::id(),
            memory_bytes,
            memory_limit_bytes: cgroup_limit().map_or(memory_bytes, |limit| limit.min(memory_bytes)),
            cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            physical_cores: processors.1,
            sockets: processors.0,
            numa_nodes: numa_nodes(),
            cpu_arch: name.machine().to_string_lossy().into_owned(),
            os_type: name.sysname().to_string_lossy().into_owned(),
            os_name: distribution(),
            os_version: format!("Kernel {}", name.release().to_string_lossy()),
            page_size: rustix::param::page_size() as u64,
            open_files_max: rustix::process::getrlimit(rustix::process::Resource::Nofile)
                .current
                .unwrap_or(u64::MAX),
        };
        RealHost { facts, data: data.to_owned() }
    }
}

/// The number (KiB, as bytes) behind a label at a line's start.
fn line_kib(file: &str, label: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix(label)).unwrap_or("");
    line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Sockets, and cores over all of them; zeros when `/proc/cpuinfo` does not tell (not every architecture does).
fn processors(cpuinfo: &str) -> (u32, u32) {
    let (mut sockets, mut cores) = (BTreeSet::new(), BTreeSet::new());
    for one in cpuinfo.split("\n\n") {
        let number = |label: &str| {
            let line = one.lines().find(|l| l.split(':').next().is_some_and(|l| l.trim() == label))?;
            line.split(':').nth(1)?.trim().parse::<u32>().ok()
        };
        if let (Some(socket), Some(core)) = (number("physical id"), number("core id")) {
            sockets.insert(socket);
            cores.insert((socket, core));
        }
    }
    (sockets.len() as u32, cores.len() as u32)
}

fn numa_nodes() -> u32 {
    let Ok(dir) = fs::read_dir("/sys/devices/system/node") else { return 0 };
    let is_node = |name: &str| name.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok());
    dir.flatten().filter(|e| e.file_name().to_str().is_some_and(is_node)).count() as u32
}

fn cgroup_limit() -> Option<u64> {
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok())
}

fn distribution() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text.lines().find_map(|l| l.strip_prefix("PRETTY_NAME=")).unwrap_or("Linux");
    name.trim_matches('"').to_owned()
}

impl Host for RealHost {
    fn facts(&self) -> HostFacts {
        self.facts.clone()
    }
    fn usage(&self) -> HostUsage {
        // The process name may contain anything: fields are counted from the last ')'.
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let fields: Vec<u64> = stat
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .split_whitespace()
            .skip(1)
            .map(|f| f.parse().unwrap_or(0))
            .collect();
        let field = |proc_number: usize| fields.get(proc_number - 4).copied().unwrap_or(0);
        let tick_us = 1_000_000 / rustix::param::clock_ticks_per_second().max(1);
        HostUsage {
            resident_bytes: field(24) * self.facts.page_size,
            virtual_bytes: field(23),
            user_cpu_us: field(14) * tick_us,
            system_cpu_us: field(15) * tick_us,
            page_faults: field(12),
            threads: field(20),
        }
    }
    fn disk_bytes(&self) -> Option<(u64, u64)> {
        let s = rustix::fs::statvfs(&self.data).ok()?;
        Some((s.f_blocks.saturating_mul(s.f_frsize), s.f_bavail.saturating_mul(s.f_frsize)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_something() {
        let host = RealHost::new(Path::new("/"));
        let facts = host.facts();
        assert!(facts.memory_bytes > 1 << 20 && facts.page_size >= 4096 && !facts.hostname.is_empty());
        let usage = host.usage();
        assert!(usage.resident_bytes > 1 << 20 && usage.virtual_bytes >= usage.resident_bytes);
        assert!((1..1000).contains(&usage.threads), "{}", usage.threads);
        let (total, free) = host.disk_bytes().unwrap();
        assert!(total >= free && total > 0);
    }

    #[test]
    fn two_threads_of_a_core_are_one_core() {
        let thread = |socket: u32, core: u32| {
            format!("processor\t: 0\nphysical id\t: {socket}\nsiblings\t: 4\ncore id\t\t: {core}\n")
        };
        let all = [thread(0, 0), thread(0, 0), thread(0, 1), thread(1, 0)].join("\n");
        assert_eq!(processors(&all), (2, 3));
        assert_eq!(processors("processor\t: 0\nBogoMIPS\t: 50.00\n"), (0, 0));
    }
}
