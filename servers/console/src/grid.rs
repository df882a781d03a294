//! The grid of a terminal: cells by row and column, scrolling, and which rows have changed since they were drawn.
//!
//! Rows are reached through an index, so that scrolling moves numbers and clears one row. Invariant: the cursor is inside the grid, and both
//! halves of a wide character are there or none.

use crate::cell::{Cell, Pen};
use alloc::vec::Vec;
use recover::snapshot::{Reader, Writer};
use sys::Errno;
use sys::fallible;

/// Largest size: cells of 8 by 16 pixels on a screen of 1920 by 1200.
pub const MAX_COLUMNS: usize = 240;
/// See [`MAX_COLUMNS`].
pub const MAX_ROWS: usize = 75;

/// Rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub rows: usize,
    pub columns: usize,
}

impl Size {
    /// What a terminal has as long as there is no screen.
    pub const USUAL: Size = Size { rows: 25, columns: 80 };

    /// The nearest size that a grid can have.
    pub fn limited(self) -> Size {
        Size { rows: self.rows.clamp(1, MAX_ROWS), columns: self.columns.clamp(2, MAX_COLUMNS) }
    }

    /// Number of cells.
    pub fn cells(self) -> usize {
        self.rows * self.columns
    }
}

/// A part of a row or of the screen, as ED and EL count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    ToEnd,
    FromStart,
    All,
}

/// See the head of the file.
pub struct Grid {
    size: Size,
    cells: Vec<Cell>,
    /// Where the row of each line of the screen is.
    index: Vec<u16>,
    /// Rows that have changed, one bit each.
    changed: [u64; 2],
}

impl Grid {
    /// An empty grid.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(size: Size) -> Result<Grid, Errno> {
        let cells = fallible::filled(Cell::blank(Pen::PLAIN), size.cells())?;
        let index = fallible::collect(0..size.rows as u16)?;
        Ok(Grid { size, cells, index, changed: [u64::MAX; 2] })
    }

    /// Its size.
    pub fn size(&self) -> Size {
        self.size
    }

    /// A row.
    pub fn row(&self, row: usize) -> &[Cell] {
        let start = usize::from(self.index[row]) * self.size.columns;
        &self.cells[start..start + self.size.columns]
    }

    /// A row, which is changed.
    fn row_mut(&mut self, row: usize) -> &mut [Cell] {
        self.changed[row / 64] |= 1 << (row % 64);
        let start = usize::from(self.index[row]) * self.size.columns;
        &mut self.cells[start..start + self.size.columns]
    }

    /// Whether a row has changed since `drawn`.
    pub fn has_changed(&self, row: usize) -> bool {
        self.changed[row / 64] & 1 << (row % 64) != 0
    }

    /// Forgets which rows have changed: they have been drawn.
    pub fn drawn(&mut self) {
        self.changed = [0; 2];
    }

    /// Has everything drawn again.
    pub fn change_all(&mut self) {
        self.changed = [u64::MAX; 2];
    }

    /// Puts a character; what it covers half of becomes blank.
    #[inline]
    pub fn put(&mut self, row: usize, column: usize, cell: Cell) {
        let cells = self.row_mut(row);
        if cells[column].0 & (3 << 21) != 0 {
            split(cells, column);
        }
        cells[column] = cell;
    }

    /// Puts a wide character into a column and the next one.
    pub fn put_wide(&mut self, row: usize, column: usize, halves: [Cell; 2]) {
        halves.into_iter().zip(column..).for_each(|(half, column)| self.put(row, column, half));
        // The second half was put over the first one's partner.
        self.row_mut(row)[column] = halves[0];
    }

    /// Clears cells of a row.
    pub fn clear(&mut self, row: usize, from: usize, to: usize, pen: Pen) {
        let columns = self.size.columns;
        let (from, to) = (from.min(columns), to.min(columns));
        if from >= to {
            return;
        }
        let cells = self.row_mut(row);
        split(cells, from);
        split(cells, to - 1);
        cells[from..to].fill(Cell::blank(pen));
    }

    /// Inserts blanks at a column; what leaves the row is lost.
    pub fn insert(&mut self, row: usize, column: usize, count: usize, pen: Pen) {
        let count = count.min(self.size.columns - column);
        let cells = self.row_mut(row);
        let end = cells.len();
        if cells[column].is_second() {
            split(cells, column);
        }
        cells.copy_within(column..end - count, column + count);
        cells[column..column + count].fill(Cell::blank(pen));
        whole_end(cells);
    }

    /// Deletes cells at a column; blanks come in from the right.
    pub fn delete(&mut self, row: usize, column: usize, count: usize, pen: Pen) {
        let count = count.min(self.size.columns - column);
        let cells = self.row_mut(row);
        split(cells, column);
        if let Some(first) = cells.get(column + count)
            && first.is_second()
        {
            split(cells, column + count);
        }
        cells.copy_within(column + count.., column);
        let end = cells.len();
        cells[end - count..].fill(Cell::blank(pen));
    }

    /// Moves the rows from `top` to before `bottom` up; blank ones come in below.
    pub fn scroll_up(&mut self, top: usize, bottom: usize, count: usize, pen: Pen) {
        let count = count.min(bottom - top);
        self.index[top..bottom].rotate_left(count);
        self.moved(top, bottom, bottom - count..bottom, pen);
    }

    /// Moves the rows from `top` to before `bottom` down; blank ones come in above.
    pub fn scroll_down(&mut self, top: usize, bottom: usize, count: usize, pen: Pen) {
        let count = count.min(bottom - top);
        self.index[top..bottom].rotate_right(count);
        self.moved(top, bottom, top..top + count, pen);
    }

    /// Fills the screen with one character.
    pub fn fill(&mut self, cell: Cell) {
        self.cells.fill(cell);
        self.change_all();
    }

    /// Takes another size. The last lines stay, so that the cursor's is among them; returns by how many rows it moves up.
    ///
    /// # Errors
    /// `ENOMEM`: the size stays.
    pub fn resize(&mut self, size: Size, cursor: usize) -> Result<usize, Errno> {
        let mut new = Grid::new(size)?;
        let dropped = (cursor + 1).saturating_sub(size.rows);
        let columns = size.columns.min(self.size.columns);
        for row in 0..size.rows.min(self.size.rows - dropped) {
            let cells = new.row_mut(row);
            cells[..columns].copy_from_slice(&self.row(row + dropped)[..columns]);
            whole_end(&mut cells[..columns]);
        }
        *self = new;
        Ok(dropped)
    }

    /// Saves it into a snapshot.
    pub fn save(&self, writer: &mut Writer) {
        writer.number(self.size.rows as u64);
        writer.number(self.size.columns as u64);
        (0..self.size.rows).flat_map(|row| self.row(row)).for_each(|cell| writer.number(cell.0));
    }

    /// Loads it from a snapshot.
    pub fn load(reader: &mut Reader) -> Option<Grid> {
        let size = Size { rows: reader.number()? as usize, columns: reader.number()? as usize };
        let mut grid = Some(size).filter(|size| size.limited() == *size).and_then(|size| Grid::new(size).ok())?;
        for cell in &mut grid.cells {
            *cell = Cell(reader.number()?);
        }
        Some(grid)
    }

    fn moved(&mut self, top: usize, bottom: usize, blank: core::ops::Range<usize>, pen: Pen) {
        blank.for_each(|row| self.row_mut(row).fill(Cell::blank(pen)));
        (top..bottom).for_each(|row| self.changed[row / 64] |= 1 << (row % 64));
    }
}

/// Makes blanks of a wide character of which a column is one half.
fn split(cells: &mut [Cell], column: usize) {
    let Some(cell) = cells.get(column).copied() else { return };
    let first = match (cell.is_wide(), cell.is_second()) {
        (true, _) => column,
        (_, true) if column > 0 => column - 1,
        _ => return,
    };
    for cell in cells.iter_mut().skip(first).take(2) {
        *cell = Cell::new(' ', cell.pen());
    }
}

/// Makes a blank of a wide character whose second half has left the row.
fn whole_end(cells: &mut [Cell]) {
    if let Some(last) = cells.last_mut().filter(|last| last.is_wide()) {
        *last = Cell::new(' ', last.pen());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(rows: &[&str]) -> Grid {
        let mut grid = Grid::new(Size { rows: rows.len(), columns: rows[0].len() }).expect("there is memory");
        for (row, text) in rows.iter().enumerate() {
            text.chars().enumerate().for_each(|(column, letter)| grid.put(row, column, Cell::new(letter, Pen::PLAIN)));
        }
        grid
    }

    fn text(grid: &Grid) -> Vec<String> {
        (0..grid.size().rows).map(|row| grid.row(row).iter().map(|cell| cell.character()).collect()).collect()
    }

    #[test]
    fn rows_scroll_within_a_region() {
        let mut grid = grid(&["aa", "bb", "cc", "dd"]);
        grid.drawn();
        grid.scroll_up(1, 3, 1, Pen::PLAIN);
        assert_eq!(text(&grid), ["aa", "cc", "  ", "dd"]);
        assert_eq!([0, 1, 2, 3].map(|row| grid.has_changed(row)), [false, true, true, false]);
        grid.scroll_down(0, 4, 9, Pen::PLAIN);
        assert_eq!(text(&grid), ["  "; 4]);
    }

    #[test]
    fn cells_are_inserted_and_deleted() {
        let mut grid = grid(&["abcd"]);
        grid.insert(0, 1, 2, Pen::PLAIN);
        assert_eq!(text(&grid), ["a  b"]);
        grid.delete(0, 0, 3, Pen::PLAIN);
        assert_eq!(text(&grid), ["b   "]);
        grid.delete(0, 3, 99, Pen::PLAIN);
        grid.insert(0, 0, 99, Pen::PLAIN);
        assert_eq!(text(&grid), ["    "]);
    }

    #[test]
    fn no_half_of_a_wide_character_stays_alone() {
        let wide = || {
            let mut grid = grid(&["abcd"]);
            grid.put_wide(0, 1, Cell::wide('中', Pen::PLAIN));
            assert_eq!(text(&grid), ["a中 d"]);
            grid
        };
        let lonely = |grid: &Grid| {
            let row = grid.row(0);
            row.iter().enumerate().any(|(at, cell)| {
                cell.is_wide() && !row.get(at + 1).is_some_and(|next| next.is_second())
                    || cell.is_second() && (at == 0 || !row[at - 1].is_wide())
            })
        };
        let changes: [fn(&mut Grid); 8] = [
            |grid| grid.put(0, 1, Cell::new('x', Pen::PLAIN)),
            |grid| grid.put(0, 2, Cell::new('x', Pen::PLAIN)),
            |grid| grid.put_wide(0, 2, Cell::wide('国', Pen::PLAIN)),
            |grid| grid.put_wide(0, 0, Cell::wide('国', Pen::PLAIN)),
            |grid| grid.clear(0, 2, 3, Pen::PLAIN),
            |grid| grid.insert(0, 0, 2, Pen::PLAIN),
            |grid| grid.delete(0, 0, 2, Pen::PLAIN),
            |grid| {
                grid.resize(Size { rows: 1, columns: 2 }, 0).expect("there is memory");
            },
        ];
        for change in changes {
            let mut grid = wide();
            change(&mut grid);
            assert!(!lonely(&grid), "{:?}", text(&grid));
        }
    }

    #[test]
    fn another_size_keeps_the_cursors_row() {
        let mut grid = grid(&["aa", "bb", "cc"]);
        assert_eq!(grid.resize(Size { rows: 2, columns: 3 }, 2), Ok(1));
        assert_eq!(text(&grid), ["bb ", "cc "]);
    }
}
