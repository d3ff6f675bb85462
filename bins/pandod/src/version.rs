//! Which version this is: MongoDB's, whose behaviour it follows (tools branch on it), and its own.

use pando_server::{GIT_VERSION, VERSION};

/// PandoDB's own version.
pub const OWN: &str = env!("CARGO_PKG_VERSION");

/// `--version`. Launchers read the first line.
pub fn text(label: &str) -> String {
    format!("{label} v{VERSION}\n{}", build_info())
}

fn build_info() -> String {
    format!(
        "Build Info: {{\n    \"version\": \"{VERSION}\",\n    \"pandodb\": \"{OWN}\",\n    \"gitVersion\": \
         \"{GIT_VERSION}\",\n    \"modules\": [],\n    \"allocator\": \"{}\",\n    \"environment\": {{\n        \
         \"distarch\": \"{}\",\n        \"target_arch\": \"{}\"\n    }}\n}}\n",
        crate::allocator::NAME,
        std::env::consts::ARCH,
        std::env::consts::ARCH
    )
}
