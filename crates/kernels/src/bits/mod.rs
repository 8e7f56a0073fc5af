//! Elements to bit planes: 64 words of 64 bits turned round, so that one word operation works on 64 elements.

pub mod cpu;
pub mod spec;
