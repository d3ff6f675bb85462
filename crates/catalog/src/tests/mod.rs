mod crash;
mod indexes;
mod upkeep;
mod recovery;
mod writes;
