"""SQLAlchemy's ORM on SQLite."""

from sqlalchemy import ForeignKey, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    books: Mapped[list["Book"]] = relationship(back_populates="author")


class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    pages: Mapped[int]
    author_id: Mapped[int] = mapped_column(ForeignKey("author.id"))
    author: Mapped[Author] = relationship(back_populates="books")


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
with Session(engine) as session:
    for number in range(100):
        session.add(Author(name=f"a{number}", books=[Book(pages=number * k) for k in range(5)]))
    session.commit()
    rows = session.execute(
        select(Author.name, func.sum(Book.pages)).join(Book).group_by(Author.name).order_by(Author.name)
    ).all()
    print(len(rows), rows[:3], sum(len(author.books) for author in session.scalars(select(Author))))
