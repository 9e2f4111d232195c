//! Configuration: the file as written, and the checked values that travel.
//!
//! ```text
//! files + environment -> tree -> schema walk -> builders and cross checks -> Config
//!                                     \____________ Report ____________/
//! ```
//!
//! Only [`valid::Config`] leaves this module; whoever holds one may rely on every cross check.

mod build;
mod environment;
mod keys;
mod load;
pub mod passwd;
mod reference;
mod report;
mod schema;
mod tree;
mod units;
pub mod valid;

pub use build::summary;
pub use load::{Input, credential_files, load};
pub use reference::{later_keys, reference};
pub use report::{Finding, Report, Severity};
pub use valid::Config;
