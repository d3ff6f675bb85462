mod builds;
mod crash;
mod drops;
mod indexes;
mod recovery;
mod upkeep;
mod writes;
