//! The stack as a whole under paused time: each trap of `gateway.md` section 9 is one test.

mod conservation;
mod deadline;
mod filter;
mod overflow;
mod retry;
mod shape;
mod world;
