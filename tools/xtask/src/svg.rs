//! Pictures of figures, as SVG: text, lines, bars.

use std::fmt::Write;

/// Colour of axes and text.
pub const DARK: &str = "#24292f";
/// Colour of lines behind the figures.
pub const LIGHT: &str = "#d0d7de";

/// Where a text is fastened.
#[derive(Clone, Copy)]
pub enum Anchor {
    /// At its begin.
    Start,
    /// At its middle.
    Middle,
    /// At its end.
    End,
}

/// A picture in the making.
pub struct Svg {
    text: String,
}

impl Svg {
    /// An empty one of this size.
    pub fn new(width: f64, height: f64, title: &str) -> Svg {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"DejaVu Sans,Helvetica,Arial,sans-serif\" font-size=\"12\" fill=\"{DARK}\">\n\
             <title>{title}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        Svg { text }
    }

    /// A line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        // Writing to a String cannot fail.
        let _ = writeln!(
            self.text,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{stroke}\"/>"
        );
    }

    /// A filled rectangle: its upper left corner, width and height.
    pub fn rect(&mut self, x: f64, y: f64, (width, height): (f64, f64), colour: &str) {
        let _ = writeln!(
            self.text,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
        );
    }

    /// The same, with words that a viewer shows when it is pointed at.
    pub fn titled_rect(&mut self, x: f64, y: f64, (width, height): (f64, f64), colour: &str, title: &str) {
        let _ = writeln!(
            self.text,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"><title>{title}</title></rect>"
        );
    }

    /// Words, with further attributes of the element.
    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, words: &str, more: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(self.text, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {more}>{words}</text>");
    }

    /// Names and their colours, side by side from `x` on.
    pub fn legend(&mut self, x: f64, y: f64, entries: &[(&str, &str)], distance: f64) {
        for (index, (name, colour)) in entries.iter().enumerate() {
            let x = x + distance * index as f64;
            self.rect(x, y - 10.0, (12.0, 12.0), colour);
            self.text(x + 18.0, y, Anchor::Start, name, "");
        }
    }

    /// The whole file.
    pub fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}
