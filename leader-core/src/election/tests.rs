//! One test a promise; what interleavings do is for the simulation and the exhaustive model.
