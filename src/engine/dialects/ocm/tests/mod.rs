//! Open Cluster Management's objects: single faults and warnings, and whole fleets.

mod reading;
