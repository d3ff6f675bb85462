//! Short runs of everything that is simulated, in one binary. More and longer ones: `cargo run -p pando-sim`.

mod cluster;
mod crud;
mod data_path;
mod migrate;
mod rows;
mod rpc;
mod set;
mod shards;
mod split;
mod workflows;
mod world;
