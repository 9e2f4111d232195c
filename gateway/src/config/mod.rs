//! Configuration: the file as written, and the checked values that travel.
