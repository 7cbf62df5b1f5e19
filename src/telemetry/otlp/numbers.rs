//! Converts a page of metrics to one request for `/v1/metrics`.

use std::time::SystemTime;

use serde_json::{Value as Json, json};

use super::{Resource, nanoseconds, resource, scope, texts};

/// The labels and the value of one line.
struct Sample {
    labels: Vec<(String, String)>,
    value: String,
}

/// The lines of one metric.
struct Metric<'p> {
    name: &'p str,
    kind: &'p str,
    help: &'p str,
    /// Each line, with the part of its name after the metric's name.
    samples: Vec<(&'p str, Sample)>,
}

/// The moments of every data point: the start of the process, and now.
#[derive(Clone, Copy)]
struct Moments {
    begun: SystemTime,
    now: SystemTime,
}

/// Converts the metrics of a page, counted since `begun`. Skips lines without a number.
pub fn numbers(page: &str, of: &Resource, begun: SystemTime, now: SystemTime) -> Json {
    let moments = Moments { begun, now };
    let metrics: Vec<Json> = read(page).iter().filter_map(|metric| moments.metric(metric)).collect();
    json!({"resourceMetrics": [{
        "resource": resource(of),
        "scopeMetrics": [{"scope": scope(), "metrics": metrics}],
    }]})
}

fn read(page: &str) -> Vec<Metric<'_>> {
    let mut metrics: Vec<Metric<'_>> = Vec::new();
    let mut help = "";
    for line in page.lines() {
        if let Some(said) = line.strip_prefix("# HELP ") {
            help = said.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            metrics.push(Metric { name, kind, help: std::mem::take(&mut help), samples: Vec::new() });
        } else if let (false, Some(metric)) = (line.starts_with('#'), metrics.last_mut())
            && let Some(rest) = line.strip_prefix(metric.name)
        {
            metric.samples.extend(sample(rest));
        }
    }
    metrics
}

/// Parses the rest of a line after the metric's name.
fn sample(rest: &str) -> Option<(&str, Sample)> {
    let end = rest.find(['{', ' '])?;
    let (suffix, rest) = rest.split_at(end);
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    let value = value.split_whitespace().next()?.to_owned();
    Some((suffix, Sample { labels, value }))
}

/// Parses labels up to the closing brace, and returns the rest.
fn labels(mut rest: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(after) = rest.strip_prefix('}') {
            return Some((found, after));
        }
        let (name, quoted) = rest.split_once("=\"")?;
        let (mut value, mut characters) = (String::new(), quoted.char_indices());
        rest = loop {
            match characters.next()? {
                (end, '"') => break &quoted[end + 1..],
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        found.push((name.to_owned(), value));
    }
}

impl Moments {
    fn metric(self, metric: &Metric<'_>) -> Option<Json> {
        let points = |suffix: &str| -> Vec<Json> {
            let of = metric.samples.iter().filter(|(named, _)| *named == suffix);
            of.filter_map(|(_, sample)| self.number(sample)).collect()
        };
        let (suffix, name, data) = match metric.kind {
            "counter" => {
                let sum =
                    json!({"aggregationTemporality": 2, "isMonotonic": true, "dataPoints": points("_total")});
                ("", "sum", sum)
            }
            "gauge" => ("", "gauge", json!({"dataPoints": points("")})),
            "info" => ("_info", "gauge", json!({"dataPoints": points("_info")})),
            "histogram" => {
                ("", "histogram", json!({"aggregationTemporality": 2, "dataPoints": self.histograms(metric)}))
            }
            _ => return None,
        };
        let is_empty = data["dataPoints"].as_array().is_none_or(Vec::is_empty);
        let described =
            json!({"name": format!("{}{suffix}", metric.name), "description": metric.help, name: data});
        (!is_empty).then_some(described)
    }

    /// Makes a data point with labels, moments and the fields in `more`.
    fn point(self, labels: &[(String, String)], mut more: Json) -> Json {
        let labels = labels.iter().filter(|(name, _)| name != "le");
        more["attributes"] = texts(labels.map(|(name, value)| (name.as_str(), value.as_str())));
        more["startTimeUnixNano"] = nanoseconds(self.begun).into();
        more["timeUnixNano"] = nanoseconds(self.now).into();
        more
    }

    fn number(self, sample: &Sample) -> Option<Json> {
        let value = match sample.value.parse::<i64>() {
            Ok(whole) => json!({"asInt": whole.to_string()}),
            Err(_) => json!({"asDouble": finite(&sample.value)?}),
        };
        Some(self.point(&sample.labels, value))
    }

    /// Returns the histograms of a metric, one for each set of labels.
    fn histograms(self, metric: &Metric<'_>) -> Vec<Json> {
        let named = |suffix: &'static str| metric.samples.iter().filter(move |(named, _)| *named == suffix);
        let of = |sample: &Sample, labels: &[(String, String)]| {
            let own = sample.labels.iter().filter(|(name, _)| name != "le");
            own.eq(labels.iter())
        };
        let histogram = |count: &Sample| {
            let labels = &count.labels;
            let sum = named("_sum")
                .find(|(_, sample)| of(sample, labels))
                .and_then(|(_, sum)| finite(&sum.value))?;
            let (mut bounds, mut counts, mut below) = (Vec::new(), Vec::new(), 0_u64);
            for (_, bucket) in named("_bucket").filter(|(_, sample)| of(sample, labels)) {
                let bound = &bucket.labels.iter().find(|(name, _)| name == "le")?.1;
                let upto: u64 = bucket.value.parse().ok()?;
                // The last bucket has no upper bound.
                bounds.extend(finite(bound));
                counts.push(upto.checked_sub(below)?.to_string());
                below = upto;
            }
            let said =
                json!({"count": count.value, "sum": sum, "explicitBounds": bounds, "bucketCounts": counts});
            Some(self.point(labels, said))
        };
        named("_count").filter_map(|(_, count)| histogram(count)).collect()
    }
}

fn finite(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::meter::{ByLabel, Counter, Histogram, Moment, Number, encode, registry};

    fn written(page: &str) -> Vec<Json> {
        let now = UNIX_EPOCH + Duration::from_secs(2);
        let of = [("service.name".to_owned(), "berth".to_owned())];
        let said = numbers(page, &of, UNIX_EPOCH + Duration::from_secs(1), now);
        assert_eq!(said["resourceMetrics"][0]["resource"]["attributes"][0]["key"], "service.name");
        let metrics = &said["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
        metrics.as_array().expect("a list").clone()
    }

    #[test]
    fn each_sort_of_number_is_written_as_what_it_is() {
        let mut registry = registry();
        let (counted, moment, number) = (ByLabel::<Counter>::default(), Moment::default(), Number::default());
        let seconds = Histogram::new([0.1, 1.0]);
        registry.register("passes", "Passes", counted.clone());
        registry.register("last", "Last", moment.clone());
        registry.register("held", "Held", number.clone());
        registry.register("seconds", "Durations", seconds.clone());
        counted.get_or_create(&[("result", "done")]).inc_by(3);
        moment.set(1.5);
        number.set(7);
        [0.05, 0.5, 0.5, 9.0].into_iter().for_each(|took| seconds.observe(took));
        let mut page = String::new();
        encode(&mut page, &registry).expect("a page");
        let [build, passes, last, held, seconds] = &written(&page)[..] else { panic!("five metrics") };
        assert_eq!(build["name"], "berth_build_info");
        let point = &passes["sum"]["dataPoints"][0];
        assert_eq!((&point["asInt"], &passes["sum"]["isMonotonic"]), (&json!("3"), &json!(true)));
        assert_eq!(point["attributes"][0], json!({"key": "result", "value": {"stringValue": "done"}}));
        assert_eq!(point["startTimeUnixNano"], "1000000000");
        assert_eq!(point["timeUnixNano"], "2000000000");
        assert_eq!(last["gauge"]["dataPoints"][0]["asDouble"], 1.5);
        assert_eq!(held["gauge"]["dataPoints"][0]["asInt"], "7");
        let point = &seconds["histogram"]["dataPoints"][0];
        assert_eq!((&point["count"], &point["sum"]), (&json!("4"), &json!(10.05)));
        assert_eq!(point["explicitBounds"], json!([0.1, 1.0]));
        assert_eq!(point["bucketCounts"], json!(["1", "2", "1"]));
    }

    #[test]
    fn labels_are_read_as_they_were_meant_and_odd_lines_are_left_out() {
        let page = "# TYPE a gauge\na{x=\"1,}\\\"\\\\\\n\",y=\"\"} 2\na{x=\"open 3\na NaN\na\nb 1\n# EOF\n";
        let [metric] = &written(page)[..] else { panic!("one metric") };
        let [point] = &metric["gauge"]["dataPoints"].as_array().expect("points")[..] else {
            panic!("one point")
        };
        assert_eq!(point["attributes"][0]["value"]["stringValue"], "1,}\"\\\n");
        assert!(written("").is_empty() && written("a 1\n# TYPE\n# HELP").is_empty());
    }
}
