"""Operations under the names and parameters of other libraries."""
