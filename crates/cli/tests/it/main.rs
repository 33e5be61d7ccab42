//! Whole runs of the binary, and the rules no lint can see.

mod commands;
mod tidy;
