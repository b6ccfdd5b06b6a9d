//! Begins and ends of the slices of a track, in the order in which they nest.

use std::collections::HashMap;

use esatto_trace::tables::{Row, Table as _, Tables};

/// Begin or end of a slice, by its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    Begin(usize),
    End(usize),
}

/// Open slices of tracks.
#[derive(Debug, Default)]
pub(crate) struct Nesting(HashMap<Row, Vec<usize>>);

impl Nesting {
    /// Begins the slice of a row. Slices of its track that do not contain it end before it.
    pub(crate) fn begin(&mut self, tables: &Tables, row: usize, mut edge: impl FnMut(Edge)) {
        let slice = &tables.slice;
        let open = self.0.entry(slice.track_id[row]).or_default();
        let depth = usize::from(slice.depth[row]);
        while open.len() > depth {
            open.pop().into_iter().for_each(|ended| edge(Edge::End(ended)));
        }
        edge(Edge::Begin(row));
        open.push(row);
    }

    /// Ends all slices that are open.
    pub(crate) fn finish(&mut self, mut edge: impl FnMut(Edge)) {
        let mut tracks: Vec<_> = self.0.drain().collect();
        tracks.sort_by_key(|(track, _)| *track);
        for (_, open) in tracks {
            open.into_iter().rev().for_each(|ended| edge(Edge::End(ended)));
        }
    }

    /// Returns the begins and ends of the slices of each track. Instants are left out.
    pub(crate) fn by_track(tables: &Tables) -> Vec<(Row, Vec<Edge>)> {
        let mut rows: HashMap<Row, Vec<usize>> = HashMap::new();
        for row in 0..tables.slice.rows() {
            if tables.slice.dur.get(row) != 0 {
                rows.entry(tables.slice.track_id[row]).or_default().push(row);
            }
        }
        let mut tracks: Vec<_> = rows.into_iter().collect();
        tracks.sort_by_key(|(track, _)| *track);
        let edges = |(track, rows): (Row, Vec<usize>)| {
            let (mut nesting, mut edges) = (Self::default(), Vec::with_capacity(rows.len() * 2));
            rows.into_iter().for_each(|row| nesting.begin(tables, row, |edge| edges.push(edge)));
            nesting.finish(|edge| edges.push(edge));
            (track, edges)
        };
        tracks.into_iter().map(edges).collect()
    }
}
