mod builds;
mod crash;
mod indexes;
mod recovery;
mod upkeep;
mod writes;
