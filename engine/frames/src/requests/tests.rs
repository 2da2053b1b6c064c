//! The three ways of doing requests do the same.

use std::fs;

use super::*;

fn kinds(depth: usize) -> Vec<Box<dyn Requests>> {
    let mut kinds: Vec<Box<dyn Requests>> = vec![Box::new(OneByOne::default()), Box::new(Threads::new(depth).unwrap())];
    match Uring::new(depth as u32) {
        Ok(uring) => kinds.push(Box::new(uring)),
        Err(error) => eprintln!("without io_uring: {error}"),
    }
    kinds
}

fn opened(requests: &mut dyn Requests, path: &std::path::Path, write: bool) -> io::Result<Arc<File>> {
    let mode = Mode { write, new: write, direct: false };
    requests.submit(1, Request::Open { path: path.to_owned(), mode })?;
    let done = requests.next(None)?.unwrap();
    assert_eq!(done.token, 1);
    let Answer::Opened(file) = done.answer else { panic!("{done:?}") };
    file.map(Arc::new)
}

#[test]
fn what_was_written_is_read_and_every_step_answers_with_its_token() {
    for (index, mut requests) in kinds(4).into_iter().enumerate() {
        let path = std::env::temp_dir().join(format!("nicbench-requests-{index}-{}", std::process::id()));
        let file = opened(&mut *requests, &path, true).unwrap();
        for (piece, mut buffer) in Buffer::several(4, 4096).unwrap().into_iter().enumerate() {
            buffer.as_mut_slice().fill(piece as u8 + 1);
            let offset = piece as u64 * 4096;
            let transfer = Transfer { file: Arc::clone(&file), buffer, from: 0, length: 4096, offset };
            requests.submit(10 + piece as u64, Request::Write(transfer)).unwrap();
        }
        let mut tokens = Vec::new();
        while let Some(done) = requests.next(None).unwrap() {
            let Answer::Moved(moved, _) = done.answer else { panic!("{done:?}") };
            assert_eq!(moved.unwrap(), 4096);
            tokens.push(done.token);
        }
        tokens.sort_unstable();
        assert_eq!(tokens, [10, 11, 12, 13]);
        requests.submit(2, Request::Sync { file: Arc::clone(&file) }).unwrap();
        assert!(matches!(requests.next(None).unwrap().unwrap().answer, Answer::Synced(Ok(()))));
        requests.submit(3, Request::Close { file: Arc::into_inner(file).unwrap() }).unwrap();
        assert!(matches!(requests.next(None).unwrap().unwrap().answer, Answer::Closed(Ok(()))));
        let bytes = fs::read(&path).unwrap();
        assert!(
            bytes.len() == 4 * 4096 && bytes.chunks(4096).zip(1..).all(|(piece, of)| piece.iter().all(|b| *b == of))
        );
        // It is there: not to be made again. Reading ends where the file does.
        assert_eq!(opened(&mut *requests, &path, true).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let file = opened(&mut *requests, &path, false).unwrap();
        let buffer = Buffer::several(1, 8192).unwrap().pop().unwrap();
        requests
            .submit(4, Request::Read(Transfer { file, buffer, from: 4096, length: 4096, offset: 3 * 4096 }))
            .unwrap();
        let Answer::Moved(Ok(4096), transfer) = requests.next(None).unwrap().unwrap().answer else { panic!() };
        assert!(transfer.buffer.as_slice()[4096..].iter().all(|byte| *byte == 4));
        requests.submit(5, Request::Read(Transfer { offset: 4 * 4096, ..transfer })).unwrap();
        assert!(matches!(requests.next(None).unwrap().unwrap().answer, Answer::Moved(Ok(0), _)));
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn errors_come_as_answers_and_nothing_asked_is_nothing_done() {
    for mut requests in kinds(2) {
        assert!(requests.next(None).unwrap().is_none());
        let error = opened(&mut *requests, std::path::Path::new("/no/such/file"), false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
