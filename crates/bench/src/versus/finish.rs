//! Rows of a finished heat.
