//! Tables in columns of their widest cell.

use std::fmt;

/// On which side of a column its cells begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of cells under a heading.
#[derive(Debug)]
pub(crate) struct Table<const COLUMNS: usize> {
    columns: [Align; COLUMNS],
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    /// A table with this heading and no rows.
    pub(crate) fn new(heading: [(&str, Align); COLUMNS]) -> Self {
        Self { columns: heading.map(|(_, align)| align), rows: vec![heading.map(|(title, _)| title.to_owned())] }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells);
    }
}

impl<const COLUMNS: usize> fmt::Display for Table<COLUMNS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |cell: &String| cell.chars().count();
        let widths: [usize; COLUMNS] =
            std::array::from_fn(|column| self.rows.iter().map(|row| width(&row[column])).max().unwrap_or(0));
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, align), column_width) in row.iter().zip(self.columns).zip(widths) {
                let space = " ".repeat(column_width - width(cell));
                let (before, after) = if align == Align::Left { ("", &*space) } else { (&*space, "") };
                line.extend([before, cell, after, "  "]);
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new([("name", Align::Left), ("size", Align::Right), ("", Align::Left)]);
        table.row(["a".into(), "12345".into(), "x".into()]);
        table.row(["größer".into(), "1".into(), String::new()]);
        assert_eq!(table.to_string(), "name     size\na       12345  x\ngrößer      1\n");
    }
}
