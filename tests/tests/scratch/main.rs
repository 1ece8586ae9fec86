//! Scratch: builds the scenarios alone while other modules are being written.
mod scenarios;
