//! x
mod schedule;
