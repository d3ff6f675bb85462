mod indexes;
mod recovery;
mod writes;
