//! Bars a layer, as inline SVG that takes its colours from the page.

use super::html::escape;

const WIDTH: f64 = 680.0;
const LABEL: f64 = 210.0;
const FIGURE: f64 = 92.0;
const ROW: f64 = 20.0;
/// Longest label drawn; the full name is in the tooltip.
const LABEL_CHARS: usize = 30;

/// One bar.
pub(super) struct Bar {
    /// Layer.
    pub label: String,
    /// Its length; what is not finite or negative is drawn as 0.
    pub value: f64,
    /// The figure as text.
    pub text: String,
}

/// A chart of horizontal bars, the longest across the whole width.
pub(super) fn bars(class: &str, bars: &[Bar]) -> String {
    let longest = bars.iter().map(|b| sane(b.value)).fold(0.0, f64::max);
    let height = ROW * bars.len() as f64;
    let mut out = format!("<svg class=\"bars {class}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n");
    for (i, bar) in bars.iter().enumerate() {
        let y = ROW * i as f64;
        let room = WIDTH - LABEL - FIGURE;
        let length = if longest > 0.0 { room * sane(bar.value) / longest } else { 0.0 };
        let (label, title, text) = (escape(&shorten(&bar.label)), escape(&bar.label), escape(&bar.text));
        let (base, end) = (y + ROW * 0.7, LABEL + length + 6.0);
        out += &format!(
            "<g><title>{title}: {text}</title>\
             <text class=\"label\" x=\"{:.1}\" y=\"{base:.1}\" text-anchor=\"end\">{label}</text>\
             <rect class=\"track\" x=\"{LABEL}\" y=\"{:.1}\" width=\"{room:.1}\" height=\"{:.1}\" rx=\"2\"/>\
             <rect class=\"bar\" x=\"{LABEL}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{:.1}\" rx=\"2\"/>\
             <text class=\"figure\" x=\"{end:.1}\" y=\"{base:.1}\">{text}</text></g>\n",
            LABEL - 8.0,
            y + 3.0,
            ROW - 6.0,
            y + 3.0,
            ROW - 6.0,
        );
    }
    out + "</svg>\n"
}

fn sane(value: f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}

/// The end of a long layer name tells more than its start.
fn shorten(label: &str) -> String {
    let n = label.chars().count();
    if n <= LABEL_CHARS {
        return label.to_string();
    }
    std::iter::once('\u{2026}').chain(label.chars().skip(n - LABEL_CHARS + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_in_proportion_and_survive_odd_values() {
        let bar = |value| Bar { label: "l".into(), value, text: "t".into() };
        let svg = bars("time", &[bar(2.0), bar(1.0), bar(f64::NAN), bar(-1.0), bar(f64::INFINITY)]);
        let room = WIDTH - LABEL - FIGURE;
        assert!(
            svg.contains(&format!("width=\"{room:.1}\" height=\"14.0\" rx=\"2\"/><text class=\"figure\""))
        );
        assert!(svg.contains(&format!("width=\"{:.1}\"", room / 2.0)));
        assert_eq!(svg.matches("class=\"bar\" x=\"210\"").count(), 5);
        assert_eq!(svg.matches("width=\"0.0\"").count(), 3);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn long_names_keep_their_end() {
        let name = "features.expand.".repeat(5) + "conv9";
        let short = shorten(&name);
        assert!(short.ends_with("conv9") && short.chars().count() == LABEL_CHARS, "{short}");
        assert_eq!(shorten("\u{e9}\u{e9}"), "\u{e9}\u{e9}");
    }
}
