mod builds;
mod crash;
mod drops;
mod indexes;
mod prepared;
mod recovery;
mod upkeep;
mod writes;
