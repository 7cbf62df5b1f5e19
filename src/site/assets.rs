//! The page's own scripts and styles, by their paths below the page's folder.

/// All of them, in the order in which the page loads them.
pub(crate) const ASSETS: &[(&str, &str)] = &[
    ("page/berth.css", include_str!("assets/berth.css")),
    ("page/dom.js", include_str!("assets/dom.js")),
    ("page/data.js", include_str!("assets/data.js")),
    ("page/links.js", include_str!("assets/links.js")),
    ("page/glyphs.js", include_str!("assets/glyphs.js")),
    ("page/map.js", include_str!("assets/map.js")),
    ("page/map-draw.js", include_str!("assets/map-draw.js")),
    ("page/fleet.js", include_str!("assets/fleet.js")),
    ("page/placement.js", include_str!("assets/placement.js")),
    ("page/cluster.js", include_str!("assets/cluster.js")),
    ("page/rollout.js", include_str!("assets/rollout.js")),
    ("page/publication.js", include_str!("assets/publication.js")),
    ("page/change.js", include_str!("assets/change.js")),
    ("page/search.js", include_str!("assets/search.js")),
    ("page/main.js", include_str!("assets/main.js")),
];
