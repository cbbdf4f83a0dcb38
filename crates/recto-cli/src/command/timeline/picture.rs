//! The timeline as SVG: the view as an area, the log as a line, batches and compressions as marks.

use std::fmt::Write;

use super::{Event, Point};
use crate::numbers::grouped;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 60.0;

pub(super) fn draw(name: &str, points: &[Point]) -> String {
    let most = points.iter().map(|point| point.tokens.max(point.log_tokens)).max();
    let most = most.unwrap_or(0).max(1);
    let last = points.len().saturating_sub(1).max(1) as f64;
    let x = |number: usize| LEFT + (WIDTH - LEFT - RIGHT) * number as f64 / last;
    let y = |tokens: u64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * tokens as f64 / most as f64;
    let line = |tokens: fn(&Point) -> u64| {
        let mut path = String::new();
        for (number, point) in points.iter().enumerate() {
            let _ = write!(path, "{:.1},{:.1} ", x(number), y(tokens(point)));
        }
        path
    };
    let floor = y(0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"15\" fill=\"#222\">Tokens over versions of {}</text>\n",
        xml_text(name)
    );
    for quarter in 0..=4_u64 {
        let tokens = most * quarter / 4;
        let at = y(tokens);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#e4e4e4\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#666\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0,
            grouped(tokens)
        );
    }
    for (number, point) in points.iter().enumerate() {
        let (colour, word) = match point.event {
            Event::Batch => ("#9aa5b1", "opened a batch"),
            Event::Back => ("#c98a1b", "went back"),
            Event::Compression => ("#c0392b", "compressed"),
            _ => continue,
        };
        let at = x(number);
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{floor:.1}\" stroke=\"{colour}\" \
             stroke-opacity=\"0.5\"><title>v{} {}: {word}, batch {}</title></line>",
            point.version, point.operation, point.batch
        );
    }
    let end = x(points.len().saturating_sub(1));
    let _ = writeln!(
        svg,
        "<polygon points=\"{LEFT:.1},{floor:.1} {}{end:.1},{floor:.1}\" fill=\"#2e8b57\" fill-opacity=\"0.35\"/>",
        line(|point| point.tokens)
    );
    for (tokens, style) in [
        (
            (|point: &Point| point.tokens) as fn(&Point) -> u64,
            "stroke=\"#2e8b57\" stroke-width=\"2\"",
        ),
        (|point: &Point| point.log_tokens, "stroke=\"#555\" stroke-dasharray=\"4 3\""),
    ] {
        let _ = writeln!(svg, "<polyline points=\"{}\" fill=\"none\" {style}/>", line(tokens));
    }
    let newest = points.last().map_or(0, |point| point.version);
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{0:.1}\" fill=\"#666\">v0</text>\
         <text x=\"{1:.1}\" y=\"{0:.1}\" text-anchor=\"end\" fill=\"#666\">v{newest}</text>",
        floor + 18.0,
        WIDTH - RIGHT
    );
    push_legend(&mut svg);
    svg.push_str("</svg>\n");
    svg
}

/// The meaning of each colour.
fn push_legend(svg: &mut String) {
    let legend = [
        ("#2e8b57", "in view"),
        ("#555", "in the log"),
        ("#c0392b", "compressed or fitted"),
        ("#9aa5b1", "a batch opened"),
        ("#c98a1b", "went back"),
    ];
    for (number, (colour, word)) in legend.iter().enumerate() {
        let at = LEFT + 150.0 * number as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{at:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"#444\">{word}</text>",
            HEIGHT - 24.0,
            at + 15.0,
            HEIGHT - 15.0
        );
    }
}

/// Escapes a text for XML and for terminals.
fn xml_text(text: &str) -> String {
    let text = crate::printable::escaped(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use recto::OperationKind;

    use super::*;

    #[test]
    fn a_picture_is_well_formed_for_any_name() {
        let mut point = Point::new(0, OperationKind::Create, 5, 9);
        point.event = Event::Compression;
        for points in [vec![], vec![point.clone()], vec![point; 3]] {
            let svg = draw("<script>\u{1b}&\"", &points);
            assert!(svg.contains("of &lt;script&gt;\\u{1b}&amp;&quot;</text>"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        }
    }
}
